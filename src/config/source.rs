//! Where settings come from.

use std::{collections::BTreeMap, env, path::Path};

use figment::{
    Error, Figment, Metadata, Profile, Provider,
    error::Kind,
    providers::{Format, Serialized, Toml},
    value::{Dict, Map, Value},
};

use super::Settings;

/// What every variable of the environment begins with that is meant for us.
const PREFIX: &str = "RESPGATE_";

/// A setting given as a flag.
pub struct Flag {
    /// The flag, as the user wrote it: `--port`.
    pub name: &'static str,
    /// The key that it sets: `server.port`.
    pub key: &'static str,
    /// The value.
    pub value: Value,
}

/// Why the settings cannot be used: one line that names the key and where it was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

/// Reads the settings: defaults, then `file`, then the environment, then `flags`.
///
/// Variables of the environment are named after the key, with two underscores for its dot: `RESPGATE_SERVER__PORT`.
pub fn load(file: Option<&Path>, flags: Vec<Flag>) -> Result<Settings, ConfigError> {
    load_with(file, env::vars().collect(), flags)
}

fn load_with(
    file: Option<&Path>,
    environment: BTreeMap<String, String>,
    flags: Vec<Flag>,
) -> Result<Settings, ConfigError> {
    let defaults = Figment::from(Serialized::defaults(Settings::default()));
    let known: Value = defaults.extract().map_err(|error| describe(&error))?;
    let mut settings = defaults;
    if let Some(path) = file {
        let source = format!("file {}", path.display());
        let toml = std::fs::read_to_string(path).map_err(|error| ConfigError(format!("{source}: {error}")))?;
        let data = Toml::string(&toml).data().map_err(|error| ConfigError(format!("{source}: {error}")))?;
        let dict = data.get(&Profile::Default).cloned().unwrap_or_default();
        settings = settings.merge(Source::new(source, dict, &known)?);
    }
    for (name, text) in environment {
        let Some(path) = name.strip_prefix(PREFIX) else { continue };
        let key = path.to_ascii_lowercase().replace("__", ".");
        let source = format!("environment variable {name}");
        let Some(default) = known.find_ref(&key) else { return Err(unknown(&key, &source)) };
        let dict = nest(&key, typed(text, default));
        settings = settings.merge(Source::new(source, dict, &known)?);
    }
    for flag in flags {
        let dict = nest(flag.key, flag.value);
        settings = settings.merge(Source::new(format!("flag {}", flag.name), dict, &known)?);
    }
    let extracted: Settings = settings.extract().map_err(|error| describe(&error))?;
    extracted.check().map_err(|(key, cause)| {
        let source = settings.find_metadata(key).map_or("the defaults", |metadata| &metadata.name);
        ConfigError(format!("{key}: {cause} (in {source})"))
    })?;
    Ok(extracted)
}

/// Settings from one place, all of whose keys exist.
struct Source {
    name: String,
    dict: Dict,
}

impl Source {
    fn new(name: String, dict: Dict, known: &Value) -> Result<Self, ConfigError> {
        let mut keys = Vec::new();
        leaves("", &dict, &mut keys);
        match keys.iter().find(|key| known.find_ref(key).is_none_or(|value| value.as_dict().is_some())) {
            Some(key) => Err(unknown(key, &name)),
            None => Ok(Self { name, dict }),
        }
    }
}

impl Provider for Source {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.name.clone())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, Error> {
        Ok(Profile::Default.collect(self.dict.clone()))
    }
}

/// The keys of all values in `dict` that are no tables, with dots.
fn leaves(prefix: &str, dict: &Dict, keys: &mut Vec<String>) {
    for (name, value) in dict {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value.as_dict() {
            Some(dict) => leaves(&key, dict, keys),
            None => keys.push(key),
        }
    }
}

fn nest(key: &str, value: Value) -> Dict {
    let nested = key.rsplit('.').fold(value, |value, name| Value::from(Dict::from([(name.to_owned(), value)])));
    nested.into_dict().unwrap_or_default()
}

/// A variable's text as a value of the same type as the default. A password of digits stays a text, zeros and all.
fn typed(text: String, default: &Value) -> Value {
    match default {
        Value::Num(..) => text.parse::<i64>().map_or_else(|_| Value::from(text), Value::from),
        Value::Bool(..) => text.parse::<bool>().map_or_else(|_| Value::from(text), Value::from),
        Value::Array(..) => text.split(',').map(|item| Value::from(item.trim())).collect::<Vec<_>>().into(),
        _ => Value::from(text),
    }
}

fn unknown(key: &str, source: &str) -> ConfigError {
    ConfigError(format!("unknown key {key:?} (in {source})"))
}

fn describe(error: &Error) -> ConfigError {
    let key = error.path.join(".");
    let source = error.metadata.as_ref().map_or("the defaults", |metadata| &metadata.name);
    let cause = match &error.kind {
        Kind::Message(text) => text.clone(),
        kind => kind.to_string(),
    };
    ConfigError(format!("{key}: {cause} (in {source})"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    fn environment(name: &str, value: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(name.to_owned(), value.to_owned()), ("PATH".to_owned(), "/bin".to_owned())])
    }

    fn error(file: Option<&Path>, environment: BTreeMap<String, String>) -> String {
        load_with(file, environment, Vec::new()).unwrap_err().to_string()
    }

    /// The shipped file speaks of the shipped program, which has RocksDB.
    #[cfg(feature = "rocksdb")]
    #[test]
    fn the_shipped_file_says_what_the_defaults_are() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/respgate.toml");
        let shipped = load_with(Some(&path), BTreeMap::new(), Vec::new()).unwrap();
        assert_eq!(shipped, Settings::default());

        let listed: Value = Figment::from(Toml::file_exact(path)).extract().unwrap();
        let known: Value = Figment::from(Serialized::defaults(Settings::default())).extract().unwrap();
        let mut keys = Vec::new();
        leaves("", known.as_dict().unwrap(), &mut keys);
        for key in keys {
            assert!(listed.find_ref(&key).is_some(), "config/respgate.toml lacks {key}");
        }
    }

    #[test]
    fn later_sources_win() {
        let file = file("[server]\nport = 1\nmaxclients = 7\nbacklog = 9\n");
        let flag = Flag { name: "--port", key: "server.port", value: Value::from(3) };
        let environment = BTreeMap::from([
            ("RESPGATE_SERVER__PORT".to_owned(), "2".to_owned()),
            ("RESPGATE_SERVER__MAXCLIENTS".to_owned(), "8".to_owned()),
        ]);
        let settings = load_with(Some(file.path()), environment, vec![flag]).unwrap();
        assert_eq!((settings.server.port, settings.server.maxclients, settings.server.backlog), (3, 8, 9));
    }

    #[test]
    fn unknown_keys_are_named_with_their_source() {
        let file = file("[server]\nprot = 1\n");
        let told = error(Some(file.path()), BTreeMap::new());
        assert_eq!(told, format!("unknown key \"server.prot\" (in file {})", file.path().display()));
        assert_eq!(
            error(None, environment("RESPGATE_SERVER__PROT", "1")),
            "unknown key \"server.prot\" (in environment variable RESPGATE_SERVER__PROT)"
        );
        assert!(error(None, environment("RESPGATE_SERVER", "1")).starts_with("unknown key \"server\""));
    }

    #[test]
    fn bad_values_are_named_with_their_source() {
        for (text, told) in [
            ("[server]\nport = 70000\n", "server.port: "),
            ("[server]\nport = \"high\"\n", "server.port: "),
            ("[server]\nidle_timeout = 10\n", "server.idle_timeout: 10 needs a unit"),
            ("[server]\ndatabases = 0\n", "server.databases: 0 is not between 1 and 128"),
            ("[server]\nunix_socket_perm = \"rwx\"\n", "server.unix_socket_perm: "),
            ("[rocksdb]\nsync = \"sometimes\"\n", "rocksdb.sync: "),
            ("[unit]\nreply_bytes_max = \"lots\"\n", "unit.reply_bytes_max: "),
            ("[sidecar]\nurl = \"nonsense\"\n", "sidecar.url: it is not a URL"),
        ] {
            let file = file(text);
            let error = error(Some(file.path()), BTreeMap::new());
            assert!(error.starts_with(told), "{error}");
            assert!(error.ends_with(&format!("(in file {})", file.path().display())), "{error}");
        }
        assert!(error(None, environment("RESPGATE_SERVER__PORT", "x")).contains("RESPGATE_SERVER__PORT"));
    }

    #[test]
    fn sorted_sets_in_a_sidecar_need_one() {
        let zset = || environment("RESPGATE_ENCODING__ZSET", "1");
        assert_eq!(
            error(None, zset()),
            "encoding.zset: 1 needs a sidecar.url (in environment variable RESPGATE_ENCODING__ZSET)"
        );
        for url in ["redis://127.0.0.1:6380/1", "redis://user:password@localhost", "unix:///tmp/redis.sock"] {
            let mut environment = zset();
            environment.insert("RESPGATE_SIDECAR__URL".to_owned(), url.to_owned());
            assert_eq!(load_with(None, environment, Vec::new()).unwrap().sidecar.url.reveal(), url);
        }
        let told = error(None, environment("RESPGATE_SIDECAR__URL", "http://:secret@host"));
        assert!(told.contains("RESPGATE_SIDECAR__URL") && !told.contains("secret"), "{told}");
    }

    #[test]
    fn text_in_the_environment_stays_text() {
        let settings = load_with(None, environment("RESPGATE_SERVER__REQUIREPASS", "0123"), Vec::new()).unwrap();
        assert_eq!(settings.server.requirepass.reveal(), "0123");
        let settings = load_with(None, environment("RESPGATE_SERVER__BIND", "127.0.0.1, ::1"), Vec::new()).unwrap();
        assert_eq!(settings.server.bind, ["127.0.0.1", "::1"]);
    }

    #[test]
    fn a_missing_file_is_named() {
        let told = error(Some(Path::new("/nowhere/respgate.toml")), BTreeMap::new());
        assert!(told.starts_with("file /nowhere/respgate.toml: "), "{told}");
    }
}
