//! Names that say that a value is a secret, and values that hold one whatever they are called.

/// Words that make a name one of a secret, as a whole word of it.
const WORDS: &[&str] = &[
    "AUTH",
    "AUTHORIZATION",
    "APIKEY",
    "BEARER",
    "CONN",
    "CONNECTIONSTRING",
    "CONNSTR",
    "COOKIE",
    "COOKIES",
    "CREDENTIAL",
    "CREDENTIALS",
    "CREDS",
    "DSN",
    "JWT",
    "KEY",
    "KEYS",
    "OTP",
    "PASS",
    "PASSCODE",
    "PASSPHRASE",
    "PASSWD",
    "PASSWORD",
    "PAT",
    "PEM",
    "PIN",
    "PRIVATE",
    "PWD",
    "SECRET",
    "SECRETS",
    "SESSION",
    "SESSIONID",
    "SIGNATURE",
    "SIGNING",
    "TOKEN",
    "WEBHOOK",
];

/// Words that make a name one of a secret wherever they stand in one of its words.
const PARTS: &[&str] = &["SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL"];

/// Words that end in `key` and open nothing.
const NO_KEYS: &[&str] =
    &["DONKEY", "HOCKEY", "HOTKEY", "JOCKEY", "LACKEY", "MONKEY", "TURKEY", "TURNKEY", "WHISKEY"];

/// Last words of names that describe a secret and are none: `TOKEN_LIMIT`, `AUTH_TYPE`.
const ABOUT: &[&str] = &[
    "AGENT",
    "ALG",
    "ALGORITHM",
    "BACKEND",
    "CLASS",
    "COUNT",
    "DESKTOP",
    "DOMAIN",
    "ENABLED",
    "ENV",
    "EXPIRY",
    "FILE",
    "FORMAT",
    "HELPER",
    "HOST",
    "LENGTH",
    "LIMIT",
    "MANAGER",
    "MAX",
    "METHOD",
    "MODE",
    "NAME",
    "PATH",
    "PORT",
    "PROVIDER",
    "REGION",
    "SEAT",
    "SIZE",
    "SOCK",
    "STORE",
    "TIMEOUT",
    "TTL",
    "TYPE",
    "VERSION",
    "VTNR",
];

/// Names that the system gives to other things.
const SYSTEM: &[&str] =
    &["PWD", "OLDPWD", "DESKTOP_SESSION", "SESSION", "XDG_SESSION_ID", "XDG_SESSION_PATH"];

/// Returns `true` if a variable, a setting or a header of this name holds a secret.
///
/// The name is read word by word, in whatever way its words are joined: `GITHUB_PAT`, `x-api-key`
/// and `clientSecret` are secret; `PATH`, `MONKEY`, `MAX_TOKENS` and `AUTH_TYPE` are not.
///
/// ```
/// use tenure_core::secret::is_secret_name;
///
/// assert!(is_secret_name("SENTRY_DSN") && is_secret_name("x-api-key"));
/// assert!(!is_secret_name("PATH") && !is_secret_name("KEYBOARD"));
/// ```
pub fn is_secret_name(name: &str) -> bool {
    if SYSTEM.contains(&name) || name.starts_with("DBUS_SESSION_BUS_") {
        return false;
    }
    let words = words(name);
    let describes = words.len() > 1 && words.last().is_some_and(|it| ABOUT.contains(&&**it));
    if describes {
        return false;
    }
    words.iter().enumerate().any(|(at, word)| {
        let ends_in_key = word.ends_with("KEY") && !NO_KEYS.contains(&&**word);
        let is_string = word == "CONNECTION" && words.get(at + 1).is_some_and(|it| it == "STRING");
        WORDS.contains(&&**word)
            || PARTS.iter().any(|part| word.contains(part))
            || ends_in_key
            || word.ends_with("KEYS") && word.len() > 4
            || word.ends_with("TOKEN")
            || is_string
    })
}

/// Returns the words of a name in capitals: they are parted by signs, and where a small letter is
/// followed by a capital.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = '_';
    for letter in name.chars() {
        let begins = before.is_ascii_lowercase() && letter.is_ascii_uppercase();
        if begins || !letter.is_ascii_alphanumeric() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut()
            && letter.is_ascii_alphanumeric()
        {
            word.push(letter.to_ascii_uppercase());
        }
        before = letter;
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Values of variables with the name of a secret that are settings.
const SETTINGS: &[&str] = &[
    "always", "bearer", "default", "disabled", "enabled", "oauth2", "optional", "password",
    "required", "secret",
];

/// Returns `true` if a variable of the environment holds a secret: its name says so, and its value is
/// not a mere setting such as `enabled`.
pub fn is_secret_variable(name: &str, value: &str) -> bool {
    is_secret_name(name) && !SETTINGS.iter().any(|known| value.eq_ignore_ascii_case(known))
}

/// Returns the parts of a variable's value that are secret: all of it if its name says so, else an
/// address with a password in it and that password.
pub fn secret_parts<'v>(name: &str, value: &'v str) -> Vec<&'v str> {
    if is_secret_name(name) { vec![value] } else { passwords(value) }
}

/// Returns the address that `value` is and the password in it, if it is one with a password.
pub fn passwords(value: &str) -> Vec<&str> {
    let Some((_, rest)) = value.split_once("://") else { return Vec::new() };
    let host = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let Some((user, _)) = rest[..host].rsplit_once('@') else { return Vec::new() };
    match user.split_once(':') {
        Some((_, password)) if !password.is_empty() => vec![value, password],
        _ => Vec::new(),
    }
}
