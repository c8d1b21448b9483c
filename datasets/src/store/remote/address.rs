//! Parses a URL into a store and a name in it, or a pattern of names.

use crate::error::RemoteError;
use crate::pattern::expand;
use object_store::path::Path as Key;
use object_store::{ObjectStoreScheme as Scheme, path};
use url::Url;

/// A parsed URL.
#[derive(Debug, Clone)]
pub(super) struct Address {
    /// The URL as given.
    pub(super) text: String,
    /// The first of the URLs, which determines how to connect to the store.
    pub(super) url: Url,
    /// The kind of store.
    pub(super) scheme: Scheme,
    /// The names in the store; a single one without a pattern.
    pub(super) keys: Vec<Key>,
    /// Whether it is a pattern; if so, each name is an object, not a folder.
    pub(super) is_pattern: bool,
    /// Whether it ends with a slash, and so is a folder.
    pub(super) is_folder: bool,
}

/// The supported schemes of URLs, as text.
const KNOWN: &str = "s3://bucket/name, gs://bucket/name, az://container/name, http:// and https://";

impl Address {
    /// Parses a URL.
    pub(super) fn parse(text: &str) -> Result<Self, RemoteError> {
        let wrong =
            |problem: String| RemoteError::Address { url: shown(text), problem: problem.into() };
        let is_pattern = text.contains('{');
        let texts = if is_pattern { expand(text).map_err(wrong)? } else { vec![text.to_owned()] };
        let mut first: Option<(Url, Scheme)> = None;
        let mut keys = Vec::with_capacity(texts.len());
        for text in &texts {
            let (url, scheme, key) = parse_one(text).map_err(wrong)?;
            match &first {
                None => first = Some((url, scheme)),
                Some((one, _))
                    if url[..url::Position::BeforePath] == one[..url::Position::BeforePath] => {}
                Some(_) => {
                    return Err(wrong("a pattern must name objects of one store".to_owned()));
                }
            }
            keys.push(key);
        }
        let Some((url, scheme)) = first else {
            return Err(wrong("the pattern names nothing".to_owned()));
        };
        if is_pattern && keys.iter().any(|key| key.as_ref().is_empty()) {
            return Err(wrong("the pattern names a whole store".to_owned()));
        }
        let is_folder = text.ends_with('/') || keys[0].as_ref().is_empty();
        Ok(Self { text: text.to_owned(), url, scheme, keys, is_pattern, is_folder })
    }

    /// The URL of a name in the store.
    pub(super) fn url_of(&self, key: &Key) -> String {
        let mut base = self.url[..url::Position::BeforePath].to_owned();
        // The part of the path that identifies the store, if the host does not.
        let first = self.keys[0].as_ref();
        let path = path_of(&self.url);
        base.push_str(path.strip_suffix(first).unwrap_or("/").trim_end_matches('/'));
        format!("{base}/{key}")
    }
}

/// A URL for messages: without a password.
fn shown(text: &str) -> String {
    match Url::parse(text) {
        Ok(mut url) if url.password().is_some() => {
            let _ = url.set_password(Some("***"));
            url.to_string()
        }
        _ => text.to_owned(),
    }
}

/// The path of a URL in the form of names in stores.
fn path_of(url: &Url) -> String {
    let path = path::Path::from_url_path(url.path());
    format!("/{}", path.map_or_else(|_| String::new(), |path| path.to_string()))
}

fn parse_one(text: &str) -> Result<(Url, Scheme, Key), String> {
    let url =
        Url::parse(text).map_err(|error| format!("not a URL: {error}; supported are {KNOWN}"))?;
    let unknown = || format!("an unsupported kind of URL; supported are {KNOWN}");
    // Either the store is unknown, or the path cannot be a name in it.
    let why_not = |_| Key::from_url_path(url.path()).err().map_or_else(unknown, |e| e.to_string());
    let (scheme, key) = Scheme::parse(&url).map_err(why_not)?;
    if matches!(scheme, Scheme::Local | Scheme::Memory) {
        return Err(if url.scheme() == "file" {
            "a file on this machine; give its path".to_owned()
        } else {
            unknown()
        });
    }
    let has_account = matches!(scheme, Scheme::MicrosoftAzure);
    if url.password().is_some() || (!url.username().is_empty() && !has_account) {
        let problem = "a password in a URL would be displayed and stored; credentials come from \
                       the environment";
        return Err(problem.to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        let problem = "the part after ? or # would not be sent; leave it out, or write %3F and %23 \
                       if it is part of the name";
        return Err(problem.to_owned());
    }
    Ok((url, scheme, key))
}

#[cfg(test)]
mod tests {
    use super::Address;

    fn keys(text: &str) -> Vec<String> {
        Address::parse(text).unwrap().keys.iter().map(ToString::to_string).collect()
    }

    fn problem(text: &str) -> String {
        Address::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn names_and_patterns_of_each_store_are_listed() {
        assert_eq!(keys("s3://bucket"), [""]);
        assert_eq!(keys("s3://bucket/a/b%20c/"), ["a/b c"]);
        assert_eq!(keys("gs://bucket/x-{08..10}.tar"), ["x-08.tar", "x-09.tar", "x-10.tar"]);
        assert_eq!(keys("https://host:1/d/{a,b}.gz"), ["d/a.gz", "d/b.gz"]);
        assert_eq!(keys("az://container/a"), ["a"]);
        assert!(Address::parse("s3://bucket/a/").unwrap().is_folder);
        assert!(!Address::parse("s3://bucket/a").unwrap().is_folder);
    }

    #[test]
    fn every_object_name_has_a_url() {
        for (text, url) in [
            ("s3://bucket/a/b", "s3://bucket/a/b"),
            ("http://h:81/x/{y,z}.tar", "http://h:81/x/y.tar"),
            (
                "https://s3.eu-west-1.amazonaws.com/bucket/a",
                "https://s3.eu-west-1.amazonaws.com/bucket/a",
            ),
        ] {
            let address = Address::parse(text).unwrap();
            assert_eq!(address.url_of(&address.keys[0]), url);
        }
    }

    #[test]
    fn what_cannot_be_reached_is_refused_with_what_to_name() {
        assert!(problem("ftp://host/a").contains("s3://bucket/name"));
        assert!(problem("file:///a").contains("give its path"));
        assert!(problem("https://h/a?download=1").contains("%3F"));
        let secret = problem("https://user:secret@h/a");
        assert!(secret.contains("environment") && !secret.contains("secret@"), "{secret}");
        assert!(problem("https://{a,b}/c").contains("one store"));
        assert!(problem("s3://b/{0..").contains('{'));
        assert!(problem("s3://b/a//b").contains("empty"));
    }
}
