//! One address in front of several gateways: each command goes to one of them at random.
//!
//! What a connection has agreed with its server (SELECT, HELLO, …) it agrees with all of them. From WATCH or MULTI on one
//! gateway gets everything, until EXEC; and for good, once the connection sends anything whose effects only that gateway
//! would know of, or that is no plain array of bulk strings.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// A listener and its connections. Dropping it stops the listener; connections end when their client or a gateway does.
pub(crate) struct Balancer {
    addr: SocketAddr,
    is_closed: Arc<AtomicBool>,
}

impl Balancer {
    pub(crate) fn start(gateways: Vec<SocketAddr>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let is_closed = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&is_closed);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if told.load(Ordering::SeqCst) {
                    return;
                }
                let gateways = gateways.clone();
                // An error is the end of one of the connections, which the other side sees.
                thread::spawn(move || Session::open(client, &gateways).and_then(Session::serve));
            }
        });
        Self { addr, is_closed }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.is_closed.store(true, Ordering::SeqCst);
        // The listener looks when somebody comes.
        let _ = TcpStream::connect(self.addr);
    }
}

/// What a command means for the choice of a gateway.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Any gateway can take it.
    Any,
    /// All of them have to know.
    All,
    /// WATCH or MULTI.
    Begin,
    /// EXEC, DISCARD or UNWATCH.
    End,
    /// After this the connection stays with one of them.
    Stay,
}

impl Kind {
    fn of(args: &[Vec<u8>]) -> Self {
        const ALL: &[&str] = &["SELECT", "HELLO", "AUTH", "RESET", "CONFIG", "DEBUG"];
        const STAY: &[&str] = &["CLIENT", "QUIT", "SHUTDOWN"];

        let name = args.first().map(|name| String::from_utf8_lossy(name).to_ascii_uppercase()).unwrap_or_default();
        match name.as_str() {
            "WATCH" | "MULTI" => Self::Begin,
            "EXEC" | "DISCARD" | "UNWATCH" => Self::End,
            name if ALL.contains(&name) => Self::All,
            name if STAY.contains(&name) => Self::Stay,
            _ => Self::Any,
        }
    }
}

/// One client, and its connection to each gateway.
struct Session {
    client: BufReader<TcpStream>,
    gateways: Vec<BufReader<TcpStream>>,
    /// The one that gets everything, between WATCH or MULTI and EXEC.
    chosen: Option<usize>,
    is_queueing: bool,
}

impl Session {
    fn open(client: TcpStream, gateways: &[SocketAddr]) -> io::Result<Self> {
        client.set_nodelay(true)?;
        let connect = |addr: &SocketAddr| {
            let stream = TcpStream::connect(addr)?;
            stream.set_nodelay(true)?;
            Ok(BufReader::new(stream))
        };
        let gateways = gateways.iter().map(connect).collect::<io::Result<_>>()?;
        Ok(Self { client: BufReader::new(client), gateways, chosen: None, is_queueing: false })
    }

    fn serve(mut self) -> io::Result<()> {
        loop {
            let mut request = Vec::new();
            let args = match read_request(&mut self.client, &mut request) {
                Ok(args) => args,
                Err(error) if error.kind() == ErrorKind::InvalidData => return self.stay(&request),
                Err(error) => return Err(error),
            };
            let kind = Kind::of(&args);
            if kind == Kind::Stay || self.is_queueing && kind == Kind::All {
                return self.stay(&request);
            }
            let reply = self.ask(kind, &request)?;
            self.client.get_mut().write_all(&reply)?;
            // An EXEC that fails ends the transaction all the same, but not one with arguments.
            if !reply.starts_with(b"-") || kind == Kind::End && args.len() == 1 {
                self.note(&args[0]);
            }
        }
    }

    /// The gateway that gets the next command.
    fn choose(&self) -> usize {
        self.chosen.unwrap_or_else(|| rand::random_range(0..self.gateways.len()))
    }

    /// Has a command carried out, and gives the bytes of the reply.
    fn ask(&mut self, kind: Kind, request: &[u8]) -> io::Result<Vec<u8>> {
        let chosen = self.choose();
        let mut replies = vec![Vec::new(); self.gateways.len()];
        for (at, gateway) in self.gateways.iter_mut().enumerate() {
            if at == chosen || kind == Kind::All {
                gateway.get_mut().write_all(request)?;
                copy_reply(gateway, &mut replies[at])?;
            }
        }
        if kind == Kind::Begin {
            self.chosen = Some(chosen);
        }
        Ok(replies.swap_remove(chosen))
    }

    /// Goes by a command that has ended, perhaps by ending a transaction.
    fn note(&mut self, name: &[u8]) {
        match name.to_ascii_uppercase().as_slice() {
            b"MULTI" => self.is_queueing = true,
            b"EXEC" | b"DISCARD" if self.is_queueing => (self.is_queueing, self.chosen) = (false, None),
            b"UNWATCH" if !self.is_queueing => self.chosen = None,
            b"RESET" => self.chosen = None,
            _ => {}
        }
    }

    /// Gives the connection to one gateway, which has not yet got these bytes.
    fn stay(mut self, request: &[u8]) -> io::Result<()> {
        let gateway = self.choose();
        let mut gateway = self.gateways.swap_remove(gateway).into_inner();
        gateway.write_all(request)?;
        gateway.write_all(self.client.buffer())?;
        let (mut replies, mut client) = (gateway.try_clone()?, self.client.get_ref().try_clone()?);
        thread::spawn(move || {
            let copied = io::copy(&mut replies, &mut client);
            let _ = client.shutdown(Shutdown::Both);
            copied
        });
        io::copy(self.client.get_mut(), &mut gateway)?;
        gateway.shutdown(Shutdown::Write)
    }
}

/// Reads an array of bulk strings. `bytes` is what was read, also of what turns out to be something else.
fn read_request(from: &mut impl BufRead, bytes: &mut Vec<u8>) -> io::Result<Vec<Vec<u8>>> {
    const COUNT_MAX: usize = 1 << 20;
    const LENGTH_MAX: usize = 512 << 20;

    let count = read_number(from, bytes, b'*', COUNT_MAX)?;
    let mut args = Vec::new();
    for _ in 0..count {
        let length = read_number(from, bytes, b'$', LENGTH_MAX)?;
        let start = bytes.len();
        read_exact(from, bytes, length + 2)?;
        args.push(bytes[start..start + length].to_vec());
    }
    if args.is_empty() { Err(ErrorKind::InvalidData.into()) } else { Ok(args) }
}

/// Reads a line that is a number after a mark.
fn read_number(from: &mut impl BufRead, bytes: &mut Vec<u8>, mark: u8, max: usize) -> io::Result<usize> {
    const LINE_MAX: u64 = 16;

    // Who sends anything else need not send a whole line.
    match from.fill_buf()?.first() {
        Some(first) if *first == mark => {}
        Some(_) => return Err(ErrorKind::InvalidData.into()),
        None => return Err(ErrorKind::UnexpectedEof.into()),
    }
    let start = bytes.len();
    from.take(LINE_MAX).read_until(b'\n', bytes)?;
    let number = std::str::from_utf8(&bytes[start + 1..]).ok().and_then(|text| text.strip_suffix("\r\n"));
    let number = number.and_then(|text| text.parse().ok()).filter(|number| *number <= max);
    number.ok_or_else(|| ErrorKind::InvalidData.into())
}

fn read_exact(from: &mut impl BufRead, bytes: &mut Vec<u8>, length: usize) -> io::Result<()> {
    let read = from.take(length as u64).read_to_end(bytes)?;
    if read < length { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
}

/// Reads one reply as it comes.
fn copy_reply(from: &mut impl BufRead, bytes: &mut Vec<u8>) -> io::Result<()> {
    let start = bytes.len();
    if from.read_until(b'\n', bytes)? == 0 {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    let line = String::from_utf8_lossy(&bytes[start..]).into_owned();
    let (kind, count) = line.split_at_checked(1).unwrap_or_default();
    // None for a null.
    let count = count.trim_end().parse::<usize>().ok();
    match (kind, count) {
        ("$" | "=", Some(length)) => read_exact(from, bytes, length + 2),
        ("*" | "~" | ">", Some(count)) => (0..count).try_for_each(|_| copy_reply(from, bytes)),
        ("%", Some(pairs)) => (0..2 * pairs).try_for_each(|_| copy_reply(from, bytes)),
        _ => Ok(()),
    }
}
