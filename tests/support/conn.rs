//! A connection that sends any bytes and reads replies under a deadline.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::{Addr, DEADLINE, Value};

/// A client of our own, with no opinion on what it sends.
pub(crate) struct Conn {
    reader: BufReader<Stream>,
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// The bytes of a request: an array of bulk strings.
pub(crate) fn command<A: AsRef<[u8]>>(args: &[A]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        let arg = arg.as_ref();
        bytes.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        bytes.extend_from_slice(arg);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

impl Conn {
    pub(crate) fn open(addr: &Addr) -> Self {
        Self::try_open(addr).unwrap_or_else(|error| panic!("cannot connect to {addr:?}: {error}"))
    }

    pub(crate) fn try_open(addr: &Addr) -> io::Result<Self> {
        let stream = match addr {
            Addr::Tcp(addr) => {
                let stream = TcpStream::connect_timeout(addr, DEADLINE)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(DEADLINE))?;
                stream.set_write_timeout(Some(DEADLINE))?;
                Stream::Tcp(stream)
            }
            Addr::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(DEADLINE))?;
                stream.set_write_timeout(Some(DEADLINE))?;
                Stream::Unix(stream)
            }
        };
        Ok(Self { reader: BufReader::new(stream) })
    }

    /// Sends bytes as they are.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.try_send(bytes).unwrap_or_else(|error| panic!("cannot send {} bytes: {error}", bytes.len()));
    }

    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.reader.get_mut().write_all(bytes)
    }

    /// Sends bytes from a thread of its own, so that a server that waits for its replies to be read cannot block.
    pub(crate) fn send_aside(&self, bytes: Vec<u8>) {
        let mut stream = match self.reader.get_ref() {
            Stream::Tcp(stream) => Stream::Tcp(stream.try_clone().unwrap()),
            Stream::Unix(stream) => Stream::Unix(stream.try_clone().unwrap()),
        };
        std::thread::spawn(move || stream.write_all(&bytes));
    }

    /// The next reply.
    pub(crate) fn read(&mut self) -> Value {
        self.try_read().unwrap_or_else(|error| panic!("no reply: {error}"))
    }

    pub(crate) fn try_read(&mut self) -> io::Result<Value> {
        Value::read(&mut self.reader)
    }

    /// Sends one command and reads its reply.
    pub(crate) fn call<A: AsRef<[u8]>>(&mut self, args: &[A]) -> Value {
        self.send(&command(args));
        self.read()
    }

    /// [`Conn::call`] with the arguments of a line, split at spaces.
    pub(crate) fn run(&mut self, line: &str) -> Value {
        self.call(&line.split_whitespace().collect::<Vec<_>>())
    }

    /// Sends commands in one write and reads as many replies.
    pub(crate) fn pipeline<A: AsRef<[u8]>>(&mut self, commands: &[Vec<A>]) -> Vec<Value> {
        self.try_pipeline(commands).unwrap_or_else(|error| panic!("pipeline: {error}"))
    }

    pub(crate) fn try_pipeline<A: AsRef<[u8]>>(&mut self, commands: &[Vec<A>]) -> io::Result<Vec<Value>> {
        let bytes: Vec<u8> = commands.iter().flat_map(|args| command(args)).collect();
        self.try_send(&bytes)?;
        commands.iter().map(|_| self.try_read()).collect()
    }

    /// Everything that the server still sends until it closes the connection.
    pub(crate) fn read_to_close(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self.reader.read_to_end(&mut bytes) {
            // A server that closes with unread input resets the connection.
            Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("not closed: {error}"),
            _ => bytes,
        }
    }

    /// True if nothing arrives within `wait`. Its use is to show that something is *not* answered yet.
    pub(crate) fn is_silent_for(&mut self, wait: Duration) -> bool {
        self.set_read_timeout(wait);
        let silent = matches!(self.reader.fill_buf(), Err(error)
            if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut));
        self.set_read_timeout(DEADLINE);
        silent
    }

    fn set_read_timeout(&self, wait: Duration) {
        match self.reader.get_ref() {
            Stream::Tcp(stream) => stream.set_read_timeout(Some(wait)).unwrap(),
            Stream::Unix(stream) => stream.set_read_timeout(Some(wait)).unwrap(),
        }
    }

    /// Says that nothing more will be sent; replies can still be read.
    pub(crate) fn finish_sending(&self) {
        match self.reader.get_ref() {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Write).unwrap(),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Write).unwrap(),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(into),
            Self::Unix(stream) => stream.read(into),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
