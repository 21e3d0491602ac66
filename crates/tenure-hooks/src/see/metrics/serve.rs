//! The metrics over HTTP: one path, one method, and bounds on everything.

use futures_util::future::{Either, select};
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The most connections at a time.
const MOST_CONNECTIONS: usize = 16;
/// The longest that a connection may take, from its first byte to its last.
const LIMIT: Duration = Duration::from_secs(5);
/// The longest head of a request.
const MOST_HEAD: usize = 8 << 10;
/// How long to wait after no connection could be accepted, for want of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// A server that is listening.
pub(super) struct Server {
    tasks: TaskTracker,
    stop: CancellationToken,
    address: SocketAddr,
}

impl Server {
    /// Listens, and answers with what `render` says.
    pub(super) fn open(
        address: SocketAddr,
        render: impl Fn() -> String + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = StdListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let listener = TcpListener::from_std(listener)?;
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        tasks.spawn(accept(listener, tasks.clone(), stop.clone(), Arc::new(render)));
        Ok(Self { tasks, stop, address })
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops, and waits until the port is free.
    pub(super) async fn close(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Nobody is left who could be asked.
impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn accept(
    listener: TcpListener,
    tasks: TaskTracker,
    stop: CancellationToken,
    render: Arc<dyn Fn() -> String + Send + Sync>,
) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let accepted = match select(pin!(listener.accept()), pin!(stop.cancelled())).await {
            Either::Left((accepted, _)) => accepted,
            Either::Right(_) => return,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        // One too many is closed at once: whoever scrapes comes again.
        let Ok(place) = places.clone().try_acquire_owned() else { continue };
        let (render, stop) = (render.clone(), stop.clone());
        tasks.spawn(async move {
            let answered = pin!(tokio::time::timeout(LIMIT, answer(stream, &*render)));
            // Whoever went away is not told.
            select(answered, pin!(stop.cancelled())).await;
            drop(place);
        });
    }
}

async fn answer(
    mut stream: TcpStream,
    render: &(dyn Fn() -> String + Send + Sync),
) -> io::Result<()> {
    let mut head = Vec::new();
    let mut part = [0; 1024];
    let status = loop {
        if head.windows(4).any(|end| end == b"\r\n\r\n") {
            break Ok(());
        }
        if head.len() > MOST_HEAD {
            break Err("431 Request Header Fields Too Large");
        }
        match stream.read(&mut part).await? {
            0 => return Ok(()),
            read => head.extend_from_slice(&part[..read]),
        }
    };
    let (status, body) = match status.and_then(|()| asked(&head)) {
        Ok(()) => ("200 OK", render()),
        Err(status) => (status, format!("{status}\n")),
    };
    let kind = match status {
        "200 OK" => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        _ => "text/plain; charset=utf-8",
    };
    let allow = if status.starts_with("405") { "Allow: GET\r\n" } else { "" };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{allow}\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

/// Whether it is the one thing that can be asked for.
fn asked(head: &[u8]) -> Result<(), &'static str> {
    const BAD: &str = "400 Bad Request";
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = std::str::from_utf8(line).map_err(|_| BAD)?;
    let mut words = line.split(' ');
    let (method, path, version) = (words.next(), words.next(), words.next());
    if words.next().is_some() || !version.is_some_and(|version| version.starts_with("HTTP/1.")) {
        return Err(BAD);
    }
    match (method, path.map(|path| path.split('?').next().unwrap_or(path))) {
        (Some("GET"), Some("/metrics")) => Ok(()),
        (Some(_), Some("/metrics")) => Err("405 Method Not Allowed"),
        (Some(_), Some(_)) => Err("404 Not Found"),
        _ => Err(BAD),
    }
}

#[cfg(test)]
mod tests {
    use super::asked;

    #[test]
    fn only_one_thing_can_be_asked_for() {
        assert_eq!(asked(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), Ok(()));
        assert_eq!(asked(b"GET /metrics?name=x HTTP/1.0\r\n\r\n"), Ok(()));
        for (line, status) in [
            ("POST /metrics HTTP/1.1", "405"),
            ("GET / HTTP/1.1", "404"),
            ("GET /metrics/../x HTTP/1.1", "404"),
            ("GET /metrics HTTP/2", "400"),
            ("GET /metrics", "400"),
            ("GET /metrics HTTP/1.1 more", "400"),
            ("\u{1}", "400"),
        ] {
            let refused = asked(format!("{line}\r\n\r\n").as_bytes()).unwrap_err();
            assert!(refused.starts_with(status), "{line}: {refused}");
        }
    }
}
