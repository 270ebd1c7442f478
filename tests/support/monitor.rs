//! Asks a gateway what monitoring asks: over HTTP, in the simplest form.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Instant,
};

use super::{DEADLINE, Gateway};

/// Where a gateway answers monitoring that was started with the flags `--admin 127.0.0.1:0`.
pub(crate) struct Monitor(SocketAddr);

impl Monitor {
    pub(crate) fn of(gateway: &mut Gateway) -> Self {
        let address = gateway.log().iter().find_map(|line| {
            let (_, rest) = line.split_once("http://")?;
            rest.split('/').next()?.parse().ok()
        });
        Self(address.expect("it says where it answers monitoring"))
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect_timeout(&self.0, DEADLINE).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.set_write_timeout(Some(DEADLINE)).unwrap();
        stream
    }

    /// The answer to a request: its status, its head, its body.
    pub(crate) fn ask(&self, method: &str, path: &str) -> (u16, String, String) {
        let mut stream = self.connect();
        write!(stream, "{method} {path} HTTP/1.1\r\nHost: monitor\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{method} {path}: {answer:?}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head.to_owned(), body.to_owned())
    }

    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        let (status, _, body) = self.ask("GET", path);
        (status, body)
    }

    /// Asks `/ready` until it answers with `status`, and gives the reason.
    pub(crate) fn until_ready_says(&self, status: u16) -> String {
        let until = Instant::now() + DEADLINE;
        loop {
            let (said, reason) = self.get("/ready");
            if said == status {
                return reason;
            }
            assert!(Instant::now() < until, "/ready says {said} {reason}");
            std::thread::yield_now();
        }
    }

    /// The value of a figure, with its labels as they are written.
    pub(crate) fn figure(&self, name: &str) -> Option<f64> {
        let (status, text) = self.get("/metrics");
        assert_eq!(status, 200, "{text}");
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map(|value| value.parse().unwrap())
    }
}
