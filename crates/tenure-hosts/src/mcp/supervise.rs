//! The task that keeps a server connected while somebody needs it.

use super::connect::{Connection, connect, is_lost};
use super::list::{self, NoList};
use super::server::Server;
use super::status::Lists;
use futures_util::future::BoxFuture;
use rmcp::model::SubscriptionFilter;
use rmcp::service::{ServiceError, Subscription};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// The first and the longest pause before something is tried again.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A connection that stood for so long was a good one: if it is lost, that is not held against it.
const GOOD_LIFE: Duration = Duration::from_secs(10);
/// How long a server may take to accept a subscription.
const SUBSCRIBE_LIMIT: Duration = Duration::from_secs(5);

/// Pauses that grow.
struct Backoff(Option<Duration>);

impl Backoff {
    /// The next pause, and a bit more or less, so that not everybody comes at once.
    fn next(&mut self) -> Duration {
        let pause = self.0.map_or(FIRST_PAUSE, |last| (last * 2).min(LONGEST_PAUSE));
        self.0 = Some(pause);
        let noise = RandomState::new().hash_one(0) % 401;
        pause.mul_f64(0.8 + noise as f64 / 1000.0)
    }

    fn reset(&mut self) {
        self.0 = None;
    }
}

/// Says that nobody attends to the server, if this is dropped before its end.
struct Attendance<'a>(Option<&'a Server>);

impl Drop for Attendance<'_> {
    fn drop(&mut self) {
        if let Some(server) = self.0 {
            server.deserted();
        }
    }
}

/// Connects, again and again, for as long as somebody needs the server.
pub(super) async fn supervise(server: Arc<Server>) {
    let mut attendance = Attendance(Some(&server));
    let mut backoff = Backoff(None);
    while !server.leave() {
        server.connecting();
        let opened = tokio::select! {
            biased;
            () = server.unwanted() => continue,
            opened = begin(&server) => opened,
        };
        let failed = match opened {
            Ok(connection) => {
                let since = Instant::now();
                let lost = attend(&server, connection).await;
                let Some(why) = lost else { continue };
                if since.elapsed() >= GOOD_LIFE || backoff.0.is_none() {
                    // The first time it is opened again at once.
                    backoff = Backoff(Some(FIRST_PAUSE / 2));
                    server.failed(why, Duration::ZERO);
                    continue;
                }
                why
            }
            Err(why) => why,
        };
        let pause = backoff.next();
        server.failed(failed, pause);
        tokio::select! {
            biased;
            () = server.unwanted() => {}
            () = server.kick.notified() => {}
            () = sleep(pause) => {}
        }
    }
    attendance.0 = None;
}

/// Opens a connection and reads the lists.
async fn begin(server: &Arc<Server>) -> Result<Begun, String> {
    let mut connection = connect(server).await?;
    match timeout(server.config.start_limit, connection.list(server)).await {
        Ok(Ok(lists)) => Ok(Begun { connection, listed: Ok(lists) }),
        Ok(Err(NoList { message, is_lost: true })) => Err(loss(&mut connection, message).await),
        Ok(Err(NoList { message, .. })) => Ok(Begun { connection, listed: Err(message) }),
        Err(_) => Err(format!("the tools were not listed within {:?}", server.config.start_limit)),
    }
}

/// Why a connection is lost, if that is known better than from what failed because of it.
async fn loss(connection: &mut Connection, otherwise: String) -> String {
    if connection.link.is_closed() { connection.end().await } else { otherwise }
}

/// A connection that was opened, and the lists, or why there are none.
struct Begun {
    connection: Connection,
    listed: Result<Lists, String>,
}

type Listing<'a> = BoxFuture<'a, Result<Lists, NoList>>;

/// Keeps an open connection until it is lost, and says why; or until nobody needs it.
async fn attend(server: &Arc<Server>, begun: Begun) -> Option<String> {
    let Begun { mut connection, listed } = begun;
    let link = connection.link.clone();
    let mut backoff = Backoff(None);
    // When to list, if that is to be done.
    let mut due: Option<Instant> = None;
    let mut listing: Option<Listing<'_>> = None;
    let trouble = match listed {
        Ok(lists) => {
            server.set_lists(lists);
            None
        }
        Err(message) => {
            due = Some(Instant::now() + backoff.next());
            Some(message)
        }
    };
    let pid = connection.child.as_ref().map(|child| child.pid());
    server.connected(link.clone(), connection.protocol(), pid);
    if trouble.is_some() {
        server.set_error(trouble);
    }
    let mut news = News::new(connection.needs_subscription());
    let lost = loop {
        tokio::select! {
            biased;
            () = server.unwanted() => break None,
            why = connection.end() => break Some(why),
            listed = async { listing.as_mut()?.await.into() }, if listing.is_some() => {
                listing = None;
                match listed {
                    Some(Ok(lists)) => {
                        backoff.reset();
                        server.set_lists(lists);
                        server.set_error(None);
                    }
                    Some(Err(NoList { message, is_lost: true })) => {
                        break Some(loss(&mut connection, message).await);
                    }
                    Some(Err(NoList { message, .. })) => {
                        server.set_error(Some(message));
                        due = Some(Instant::now() + backoff.next());
                    }
                    None => {}
                }
            }
            () = link.changes.lists.notified() => due = Some(Instant::now()),
            () = link.changes.doubt.notified() => due = Some(Instant::now()),
            () = news.next(&link.peer) => due = Some(Instant::now()),
            () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)),
                if due.is_some() && listing.is_none() =>
            {
                due = None;
                listing = Some(Box::pin(list::list(&link.peer, server)));
            }
        }
    };
    match &lost {
        Some(why) => link.explain(why),
        None => {
            link.explain("nobody needs it any more");
            server.closing();
        }
    }
    drop((listing, news));
    connection.close(server.config.stop_limit).await;
    lost
}

/// News of a server that tells them only to those who subscribe.
struct News {
    is_wanted: bool,
    subscription: Option<Subscription>,
    backoff: Backoff,
}

impl News {
    fn new(is_wanted: bool) -> Self {
        Self { is_wanted, subscription: None, backoff: Backoff(None) }
    }

    /// Resolves when the lists have changed, or may have.
    async fn next(&mut self, peer: &rmcp::Peer<rmcp::RoleClient>) {
        while self.is_wanted {
            if let Some(subscription) = &mut self.subscription {
                if let Ok(Some(_)) = subscription.next().await {
                    return;
                }
                self.subscription = None;
                sleep(self.backoff.next()).await;
            }
            let lists = SubscriptionFilter::builder()
                .tools_list_changed()
                .prompts_list_changed()
                .resources_list_changed()
                .build();
            match timeout(SUBSCRIBE_LIMIT, peer.listen(lists)).await {
                Ok(Ok(subscription)) => self.subscription = Some(subscription),
                Ok(Err(ServiceError::McpError(_))) => self.is_wanted = false,
                Ok(Err(error)) if is_lost(&error) => self.is_wanted = false,
                _ => sleep(self.backoff.next()).await,
            }
        }
        std::future::pending().await
    }
}
