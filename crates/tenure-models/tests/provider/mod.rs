//! What a provider's model promises, asked through real agents, against a server on this machine
//! that does exactly what a test says.

mod cuts;
mod faults;
mod keys;
mod limits;
mod server;
mod strings;
mod support;
mod wire_anthropic;
mod wire_gemini;
mod wire_ollama;
mod wire_openai;
