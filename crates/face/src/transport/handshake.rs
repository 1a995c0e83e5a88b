//! What the request of a WebSocket handshake says about its sender.
//!
//! Owns which origins are accepted, and which requests come from a browser or
//! through a proxy. A browser names the page in `Origin` (RFC 6454, section 7)
//! and a page cannot leave it out; a proxy names itself or its client in
//! `Forwarded` (RFC 7239), `Via` (RFC 9110, section 7.6.3) or `X-Forwarded-For`.
//! Either way the sender is not simply the program at the other end.

use std::sync::{Arc, OnceLock};

use tungstenite::handshake::server::{Callback, ErrorResponse, Request, Response};
use tungstenite::http::{HeaderMap, StatusCode, header};

/// Who sent a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    /// The program at the other end.
    Program,
    /// A web page, or the client of a proxy.
    PageOrProxy,
    /// A web page of an origin that is not accepted.
    UnacceptedOrigin,
}

/// Checks one request, and remembers its sender.
#[derive(Clone, Debug)]
pub(crate) struct RequestCheck {
    /// Origins that are accepted; empty: all.
    origins: Arc<[String]>,
    sender: Arc<OnceLock<Sender>>,
}

impl RequestCheck {
    pub(crate) fn new(origins: Arc<[String]>) -> Self {
        Self {
            origins,
            sender: Arc::default(),
        }
    }

    /// Who sent the request; `None`: it is not read yet.
    pub(crate) fn sender(&self) -> Option<Sender> {
        self.sender.get().copied()
    }
}

impl Callback for RequestCheck {
    fn on_request(self, request: &Request, response: Response) -> Result<Response, ErrorResponse> {
        let sender = sender_of(request.headers(), &self.origins);
        // There is one request on a connection.
        let _ = self.sender.set(sender);
        if sender == Sender::UnacceptedOrigin {
            let mut refusal = ErrorResponse::new(Some("origin not accepted\n".into()));
            *refusal.status_mut() = StatusCode::FORBIDDEN;
            return Err(refusal);
        }
        Ok(response)
    }
}

fn sender_of(headers: &HeaderMap, origins: &[String]) -> Sender {
    let mut named = headers.get_all(header::ORIGIN).iter().peekable();
    let has_origin = named.peek().is_some();
    // Scheme and host have no case (RFC 6454, section 4).
    let is_accepted = |origin: &[u8]| {
        let mut accepted = origins.iter().map(|accepted| accepted.as_bytes());
        accepted.any(|accepted| accepted.eq_ignore_ascii_case(origin))
    };
    if !origins.is_empty() && !named.all(|origin| is_accepted(origin.as_bytes())) {
        return Sender::UnacceptedOrigin;
    }
    let is_forwarded = headers.keys().any(|name| {
        matches!(name.as_str(), "forwarded" | "via") || name.as_str().starts_with("x-forwarded-")
    });
    if has_origin || is_forwarded {
        Sender::PageOrProxy
    } else {
        Sender::Program
    }
}

#[cfg(test)]
mod tests {
    use tungstenite::http::HeaderName;

    use super::*;

    fn sender(lines: &[(&'static str, &'static str)], origins: &[&str]) -> Sender {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            headers.append(name, value.parse().unwrap());
        }
        let origins: Vec<_> = origins.iter().map(|&origin| origin.to_owned()).collect();
        sender_of(&headers, &origins)
    }

    #[test]
    fn a_page_or_proxy_is_told_from_a_program_by_its_headers() {
        let page = ("Origin", "https://page.example");
        assert_eq!(sender(&[], &[]), Sender::Program);
        assert_eq!(sender(&[("Host", "h")], &["null"]), Sender::Program);
        let indirect = [
            page,
            ("Origin", ""),
            ("FORWARDED", "for=_x"),
            ("via", "1.1 p"),
            ("X-Forwarded-For", "192.0.2.1"),
            ("X-Forwarded-Proto", "https"),
        ];
        for line in indirect {
            assert_eq!(sender(&[line], &[]), Sender::PageOrProxy, "{line:?}");
        }
        let accepted = ["HTTPS://page.example"];
        assert_eq!(sender(&[page], &accepted), Sender::PageOrProxy);
        let refused = [
            vec![("Origin", "null")],
            vec![("Origin", "https://page.example.org")],
            vec![("Origin", "https://page.exampl")],
            vec![page, ("Origin", "https://other.example")],
        ];
        for lines in refused {
            let sender = sender(&lines, &accepted);
            assert_eq!(sender, Sender::UnacceptedOrigin, "{lines:?}");
        }
    }
}
