//! A streamed model call through a provider, against reading the same bytes by hand.
//!
//! By hand is the same HTTP client, a buffer that is cut into lines, and one call of the parser for
//! the JSON of each frame. It makes nothing of what it parsed: no text is assembled and handed on,
//! no usage is counted, nobody notices a stream that ends too early, and no time is limited.

use super::Measured;
use crate::fakes::{INPUT, builder, started};
use crate::measure::{Bench, since};
use crate::report::Figure;
use crate::streams::{DELTAS, serve, text};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::error::Error;
use std::hint::black_box;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tenure::agent::Agent;
use tenure::context::ModelCx;
use tenure::model::{Model, ModelError, ModelRequest, ModelResponse};
use tenure::models::provider::{Authority, ProviderConfig, ProviderEntry, Providers, RemoteModel};
use tenure_http::reqwest::Client;

/// Calls of one sample.
const CALLS: usize = 10;

/// Calls the model again and again, as the agent called it, and keeps how long one call took.
struct Repeated {
    model: RemoteModel,
    took: Arc<Mutex<f64>>,
}

#[async_trait]
impl Model for Repeated {
    async fn call(
        &self,
        request: &ModelRequest,
        cx: ModelCx<'_>,
    ) -> Result<ModelResponse, ModelError> {
        // The first may open a connection.
        let response = self.model.call(request, cx).await?;
        let start = Instant::now();
        for _ in 0..CALLS {
            black_box(self.model.call(request, cx).await?);
        }
        *self.took.lock().expect("nobody panicked") = since(start) / CALLS as f64;
        Ok(response)
    }
}

/// A wire: through the provider, and by hand.
struct Wire {
    agent: Agent,
    took: Arc<Mutex<f64>>,
    client: Client,
    url: String,
    body: String,
}

impl Wire {
    fn new(
        bench: &Bench,
        providers: &Providers,
        (spec, url, body): (&str, String, Value),
    ) -> Result<Self, Box<dyn Error>> {
        let took = Arc::new(Mutex::new(f64::INFINITY));
        let model = Repeated { model: providers.model(spec)?, took: took.clone() };
        let mut agent = None;
        bench.on_thread(async {
            agent = Some(started(builder(model)).await);
            0.0
        });
        let agent = agent.ok_or("the agent was not started")?;
        let client = tenure_http::loopback_client()?;
        let wire = Self { agent, took, client, url, body: body.to_string() };
        wire.check(bench)?;
        Ok(wire)
    }

    /// Both sides have to have read all of it.
    fn check(&self, bench: &Bench) -> Result<(), Box<dyn Error>> {
        let mut found = (0, String::new());
        bench.on_thread(async {
            let frames = self.by_hand().await.expect("the server answers");
            let turn = self.agent.request(INPUT).stream().finish().await;
            found = (frames, turn.expect("the server answers").output().to_owned());
            0.0
        });
        let (frames, answer) = found;
        if frames < DELTAS || !answer.starts_with(&text()) {
            return Err(format!("{frames} frames and the text {answer:?} came of a stream").into());
        }
        Ok(())
    }

    fn provider(&self, bench: &Bench) -> f64 {
        bench.on_thread(async {
            let mut stream = self.agent.request(INPUT).stream();
            while let Some(delta) = stream.next().await {
                black_box(delta);
            }
            black_box(stream.finish().await.expect("the server answers"));
            *self.took.lock().expect("nobody panicked")
        })
    }

    fn bare(&self, bench: &Bench) -> f64 {
        bench.on_thread(async {
            self.by_hand().await.expect("the server answers");
            let start = Instant::now();
            for _ in 0..CALLS {
                black_box(self.by_hand().await.expect("the server answers"));
            }
            since(start) / CALLS as f64
        })
    }

    /// Reads a stream and parses its frames, of which it says the number.
    async fn by_hand(&self) -> Result<usize, Box<dyn Error>> {
        let request = self.client.post(&self.url).header("content-type", "application/json");
        let mut response = request.body(self.body.clone()).send().await?;
        let (mut buffer, mut frames) = (Vec::new(), 0);
        while let Some(chunk) = response.chunk().await? {
            buffer.extend_from_slice(&chunk);
            let mut start = 0;
            while let Some(length) = buffer[start..].iter().position(|byte| *byte == b'\n') {
                let line = &buffer[start..start + length];
                if let Some(data) = line.strip_prefix(b"data: ")
                    && data != b"[DONE]"
                {
                    black_box(serde_json::from_slice::<Value>(data)?);
                    frames += 1;
                }
                start += length + 1;
            }
            buffer.drain(..start);
        }
        Ok(frames)
    }
}

pub(crate) fn measure(bench: &Bench) -> Measured {
    let base = format!("http://{}/v1", serve()?);
    let mut config = ProviderConfig::default();
    for provider in ["openai", "anthropic"] {
        let mut entry = ProviderEntry::default();
        entry.base_url = Some((base.clone(), Authority::User));
        config.providers.insert(provider.to_owned(), entry);
    }
    let providers = Providers::with_env(config, |_| Some("sk-none".to_owned()));
    let question = json!([{ "role": "user", "content": INPUT }]);
    let openai = Wire::new(
        bench,
        &providers,
        (
            "openai.gpt-4.1-mini",
            format!("{base}/chat/completions"),
            json!({ "model": "gpt-4.1-mini", "stream": true, "messages": question }),
        ),
    )?;
    let anthropic = Wire::new(
        bench,
        &providers,
        (
            "anthropic.claude-haiku-4-5",
            format!("{base}/messages"),
            json!({
                "model": "claude-haiku-4-5", "stream": true, "max_tokens": 1024,
                "messages": question,
            }),
        ),
    )?;
    let [openai_ns, openai_bare_ns, anthropic_ns, anthropic_bare_ns] = bench.race([
        &mut || openai.provider(bench),
        &mut || openai.bare(bench),
        &mut || anthropic.provider(bench),
        &mut || anthropic.bare(bench),
    ]);
    bench.on_thread(async {
        openai.agent.shutdown().await;
        anthropic.agent.shutdown().await;
        0.0
    });
    // The figure is the worse of them.
    let openai = (("openai_ns", openai_ns), ("openai_bare_ns", openai_bare_ns));
    let anthropic = (("anthropic_ns", anthropic_ns), ("anthropic_bare_ns", anthropic_bare_ns));
    let (worse, other) = if openai_ns / openai_bare_ns > anthropic_ns / anthropic_bare_ns {
        (openai, anthropic)
    } else {
        (anthropic, openai)
    };
    let figure = Figure::ratio("wire_ratio", 2.0, worse.0, worse.1);
    Ok(vec![figure.with(other.0.0, other.0.1).with(other.1.0, other.1.1)])
}
