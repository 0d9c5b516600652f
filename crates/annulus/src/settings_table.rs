//! Tables of settings: structs in which each setting is declared once.
//!
//! A field is a setting. Its attributes and its doc make the flag with its help, and the variable;
//! its name is the name in the file. [`settings_table!`] adds how two sources are merged, and the
//! values that the system tables show. docs/settings.md is made of the flags, by a test
//! (`settings_page`).

use std::fmt::Display;
use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;
use node::system::ProcessSetting;

/// Declares a struct of settings, each of them an `Option` or a struct of settings again.
///
/// If values are shown, the struct's name is followed by `=> resolved: Resolved`: a name for the
/// settings that count, and their type. A field that is shown is followed by `=> "kind", value`,
/// where the value is made of `resolved`. A field without it is not shown, so that a secret is
/// shown only if somebody writes it.
macro_rules! settings_table {
    (
        $(#[$($of_struct:tt)*])*
        pub struct $settings:ident {
            $(
                $(#[$($of_field:tt)*])*
                pub $field:ident: $type:ty,
            )*
        }
    ) => {
        #[derive(clap::Args, Clone, Debug, Default, serde::Deserialize)]
        #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
        $(#[$($of_struct)*])*
        pub struct $settings {
            $(
                $(#[$($of_field)*])*
                pub $field: $type,
            )*
        }

        impl $settings {
            /// Takes the settings of `other` where these are not set.
            pub fn or(self, other: $settings) -> $settings {
                $settings {
                    $($field: self.$field.or(other.$field),)*
                }
            }
        }
    };
    (
        $(#[$($of_struct:tt)*])*
        pub struct $settings:ident => $resolved:ident: $counts:ty {
            $(
                $(#[$($of_field:tt)*])*
                pub $field:ident: $type:ty $(=> $kind:literal, $value:expr)?,
            )*
        }
    ) => {
        $crate::settings_table::settings_table! {
            $(#[$($of_struct)*])*
            pub struct $settings {
                $(
                    $(#[$($of_field)*])*
                    pub $field: $type,
                )*
            }
        }

        impl $settings {
            /// The settings that are shown, in the order of the table.
            pub const SHOWN: &'static [$crate::settings_table::ShownSetting<$settings, $counts>] = &[
                $($(
                    $crate::settings_table::ShownSetting {
                        field: stringify!($field),
                        kind: $kind,
                        is_set: |settings: &$settings| settings.$field.is_some(),
                        value: |$resolved: &$counts| $crate::settings_table::text(&$value),
                    },
                )?)*
            ];
        }
    };
}

pub(crate) use settings_table;

/// A setting that is shown. `S` are settings of one source, `R` all settings that count.
pub struct ShownSetting<S, R> {
    /// The name of its field.
    pub field: &'static str,
    /// The kind of its value, such as `integer`.
    pub kind: &'static str,
    /// Whether a source has it.
    pub is_set: fn(&S) -> bool,
    /// The value that counts.
    pub value: fn(&R) -> String,
}

impl<S, R> ShownSetting<S, R> {
    /// The setting with its value and the place that the value comes from: the command line or
    /// environment, which has given the first settings, the file, which has the second, or neither.
    pub fn setting(&self, resolved: &R, given: &S, file: &S) -> ProcessSetting {
        ProcessSetting {
            name: self.field.replace('_', "-"),
            value: (self.value)(resolved),
            source: match ((self.is_set)(given), (self.is_set)(file)) {
                (true, _) => "command line or environment",
                (false, true) => "file",
                (false, false) => "default",
            },
            kind: self.kind,
        }
    }
}

/// A value as it is shown.
pub fn text(value: &dyn Display) -> String {
    value.to_string()
}

/// The word for no value.
pub fn none() -> String {
    "none".to_owned()
}

/// A path, or "none".
pub fn path(path: Option<&Path>) -> String {
    path.map_or_else(none, |path| path.display().to_string())
}

/// An interval or a timeout, or "never".
pub fn span(span: Option<Duration>) -> String {
    span.map_or_else(|| "never".to_owned(), |span| format!("{span:?}"))
}

/// A value by the word that the command line takes for it.
pub fn word(value: impl ValueEnum) -> String {
    let word = value.to_possible_value();
    word.map_or_else(none, |word| word.get_name().to_owned())
}
