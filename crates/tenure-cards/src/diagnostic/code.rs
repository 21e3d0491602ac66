//! The table of diagnostic codes.

use super::Severity;

macro_rules! codes {
    ($($name:ident = $code:literal, $severity:ident, $meaning:literal;)*) => {
        /// What a diagnostic is about. A code, once published, keeps its meaning for ever.
        ///
        /// T01xx files and YAML, T02xx fields and types of cards, T03xx hooks, T04xx Python,
        /// T05xx references between cards and paths, T06xx project and configuration, T07xx
        /// what cannot be run, T09xx things that mean nothing, T10xx workflows.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Code {
            $(#[doc = concat!($code, ": ", $meaning, ".")] $name,)*
        }

        impl Code {
            /// Every code, in the order of the table.
            pub const ALL: &'static [Code] = &[$(Code::$name),*];

            /// The code as people see and search for it: `T0113`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$name => $code,)* }
            }

            /// The name of the code in this enum, for tools that want a readable one.
            pub const fn name(self) -> &'static str {
                match self { $(Code::$name => stringify!($name),)* }
            }

            /// One line on what it means.
            pub const fn meaning(self) -> &'static str {
                match self { $(Code::$name => $meaning,)* }
            }

            /// How grave it is unless said otherwise.
            pub const fn severity(self) -> Severity {
                match self { $(Code::$name => Severity::$severity,)* }
            }
        }
    };
}

// One line each: name, code, severity, meaning. Keep the codes in ascending order.
codes! {
    // T01xx: files and YAML
    PathMissing = "T0101", Error, "a file or folder that was named is not there";
    Unreadable = "T0102", Error, "a file cannot be read";
    TooLarge = "T0103", Error, "a file is larger than 1 MiB";
    NotUtf8 = "T0104", Error, "a file is not valid UTF-8";
    UnknownSuffix = "T0105", Error, "a file's suffix is not one of a card";
    SkillManifest = "T0106", Error, "SKILL.md describes a skill, not an agent";
    EmptyFile = "T0107", Error, "a file is empty";
    NoFrontMatter = "T0108", Error, "a Markdown card has no front matter";
    UnterminatedFrontMatter = "T0109", Error, "front matter has no closing line";
    TomlFrontMatter = "T0110", Error, "front matter is TOML, cards use YAML";
    NotAMapping = "T0111", Error, "a card's YAML is not a mapping of fields";
    InlineHistory = "T0112", Error, "a card's body holds a conversation";
    YamlSyntax = "T0113", Error, "text is not valid YAML";
    DuplicateKey = "T0114", Error, "a mapping has the same key twice";
    KeyNotText = "T0115", Error, "a mapping's key is not text";
    UnknownTag = "T0116", Error, "a YAML tag is unknown";
    SeveralDocuments = "T0117", Error, "a file holds more than one YAML document";
    UnknownAnchor = "T0118", Error, "an alias names an anchor that is not defined before it";
    TooManyNodes = "T0119", Error, "YAML expands to more than a card may hold";
    TooDeep = "T0120", Error, "YAML is nested too deeply";
    BadMerge = "T0121", Error, "a merge key's value is not a mapping or a list of mappings";
    RecursiveAlias = "T0122", Error, "an alias is inside the value that it stands for";
    TagMismatch = "T0123", Error, "a value does not fit its YAML tag";
    JsonSyntax = "T0124", Error, "text is not valid JSON";
    TooMuch = "T0125", Error, "a file asks for more than its reader gives";
    YamlReaderFailed = "T0199", Error, "the YAML reader itself failed on a file";
    // T02xx: fields and types of cards
    UnknownField = "T0201", Error, "a field is not one of a card";
    FieldOfOtherType = "T0202", Error, "a field belongs to another type of card";
    MissingField = "T0203", Error, "a field that is needed is missing";
    WrongKind = "T0204", Error, "a value is of the wrong kind";
    OutOfRange = "T0205", Error, "a number is out of range";
    NotOneOf = "T0206", Error, "a value is not one of those possible";
    EmptyText = "T0207", Error, "a text is empty";
    UnknownType = "T0208", Error, "a type of card is unknown";
    UnknownSchemaVersion = "T0209", Error, "a card's schema version is unknown";
    Contradiction = "T0210", Error, "two fields contradict each other";
    InstructionTwice = "T0211", Error, "a card has two instructions";
    BadInputSchema = "T0212", Error, "a tool's input schema is not valid";
    TemplateFileMissing = "T0213", Error, "a file that an instruction takes in cannot be taken";
    TemplateRefused = "T0214", Error, "an instruction asks for something from the network";
    HistoryMissing = "T0215", Error, "a history file cannot be read";
    BadHistory = "T0216", Error, "a history file holds no valid conversation";
    BadFolder = "T0217", Error, "a working directory cannot be used";
    BadTarget = "T0218", Error, "the target of a tool server cannot be used";
    SecretVariable = "T0219", Error, "a variable with a secret stands in a field that is not for secrets";
    // T03xx: hooks
    UnknownHookKey = "T0301", Error, "a hook stands under an unknown name";
    NotAHook = "T0302", Error, "a hook is neither a spec, a command nor a table";
    BadSpec = "T0303", Error, "a hook spec is not of the form file.py:function";
    UnknownHookField = "T0304", Error, "a field is not one of a hook";
    RunOrUse = "T0305", Error, "a hook needs exactly one of run and use";
    WithWithoutUse = "T0306", Error, "with is for hooks that are named by use";
    UnknownPoint = "T0307", Error, "a hook point is unknown";
    MissingPoint = "T0308", Error, "a hook does not say where it is called";
    BadTransition = "T0309", Error, "a transition names no phases, or is one that no agent makes";
    BadDuration = "T0310", Error, "a duration of a hook needs a number and a unit";
    BadPolicy = "T0311", Error, "a policy is unknown";
    DenyTooLate = "T0312", Error, "a hook cannot deny what has already happened";
    BadCondition = "T0313", Error, "a condition does not compile";
    UnknownHookName = "T0314", Error, "an order constraint names no hook";
    OrderCycle = "T0315", Error, "hooks stand before each other in a circle";
    DuplicateHookName = "T0316", Error, "two hooks have the same name";
    BadProgram = "T0317", Error, "a hook's program cannot be run";
    UnknownUse = "T0318", Error, "no hook is registered under a name";
    BadOption = "T0319", Error, "an option of a ready-made hook cannot be used";
    // T04xx: Python
    PythonFileMissing = "T0401", Error, "a Python file is not there";
    NotAFile = "T0402", Error, "a path is not a file";
    OutsideProject = "T0403", Error, "a path leaves the project";
    LinkOutsideProject = "T0404", Error, "a link leads out of the project";
    PythonUnreadable = "T0405", Error, "a Python file cannot be read";
    PythonSyntax = "T0406", Error, "a Python file does not parse";
    FunctionMissing = "T0407", Error, "a Python file has no such function";
    NotCallable = "T0408", Error, "a name in a Python file is not a function";
    NotCheckable = "T0409", Error, "a name in a Python file comes from elsewhere";
    ParametersDoNotFit = "T0410", Error, "a function's parameters do not fit its use";
    NextMissing = "T0411", Error, "a function that wraps does not take next";
    ToolParameters = "T0412", Error, "a tool has parameters that no model could give";
    ToolAnnotation = "T0413", Error, "a tool's parameter has a type that no JSON becomes";
    AnnotationUnresolved = "T0414", Error, "the type of a tool's parameter names something that is not there";
    RelativeImport = "T0415", Error, "a relative import in a Python file leads nowhere";
    // T05xx: cards together
    DuplicateAgent = "T0501", Error, "two agents have the same name";
    MissingAgent = "T0502", Error, "an agent that is named is not there";
    SelfReference = "T0503", Error, "an agent names itself";
    AgentCycle = "T0504", Error, "agents name each other in a circle";
    TwoDefaults = "T0505", Error, "two agents are the default";
    ReservedName = "T0506", Error, "an agent's name is taken";
    ToolNameClash = "T0507", Error, "two tools of an agent have the same name";
    NoCards = "T0508", Error, "a folder holds no card";
    MissingServer = "T0509", Error, "a tool server that is named is not there";
    StrayFilter = "T0510", Error, "a filter names a tool server that the card does not use";
    ServerClash = "T0511", Error, "two tool servers have the same name";
    // T06xx: project and configuration
    ConfigSyntax = "T0601", Error, "tenure.toml or the user's configuration is not valid TOML";
    UnknownSetting = "T0602", Error, "a setting of a configuration is unknown";
    BadSetting = "T0603", Error, "a setting of a configuration has a wrong value";
    KeyInConfig = "T0604", Error, "a key, or the power over one, stands where it does not belong";
    BadServer = "T0605", Error, "a tool server of tenure.toml cannot be used";
    // T07xx: what cannot be run
    NotRunnable = "T0701", Error, "a card asks for something that cannot be run yet";
    RemoteModel = "T0702", Error, "a model over the network cannot be reached: its key is missing, or may not go there";
    BadScript = "T0703", Error, "a script of a model cannot be used";
    BadSkill = "T0704", Error, "a skill cannot be used";
    CannotBeBuilt = "T0705", Error, "an agent cannot be built";
    UnknownModel = "T0706", Error, "a model's name means nothing";
    UnsetVariable = "T0707", Error, "a variable that a run needs is not set";
    NotBuilt = "T0708", Error, "a card uses something that this program was built without";
    KeyToHost = "T0709", Error, "the key of a provider may not be sent to a tool server";
    // T09xx: things that mean nothing, or not what they seem to
    SmartType = "T0901", Warning, "the type smart is an older spelling";
    UndescribedParameter = "T0902", Warning, "a parameter that a model must give has no description";
    UnknownTemplate = "T0903", Warning, "a template in an instruction is unknown and stays as it is";
    MeaninglessField = "T0904", Warning, "a field means nothing";
    StrayYaml = "T0905", Warning, "a YAML file in a folder of cards is not a card";
    SecretInCard = "T0906", Warning, "a key is written into a card";
    UnusedHandoffs = "T0907", Warning, "a handoff means nothing: the pattern uses none, or another counts";
    StrayFile = "T0908", Warning, "a file in a workflow's folder is not read";
    DoubtfulHook = "T0909", Warning, "a hook is hardly meant as it is configured";
    FrameworkImport = "T0910", Warning, "a Python file imports what is there only where a package is installed";
    MissingFolder = "T0911", Warning, "a working directory is not there yet";
    UnreadConfig = "T0912", Warning, "a configuration of fast-agent is not read";
    UnseenByProcess = "T0913", Warning, "a function reads what only functions of another process set";
    ForeignConfig = "T0914", Warning, "a tenure.toml above the project belongs to another user and is not read";
    // T10xx: workflows
    NoWorkflow = "T1001", Error, "a folder is not a workflow";
    FileTwice = "T1002", Error, "a file is there twice, and only one of the two can be meant";
    UnknownEntryField = "T1003", Error, "a field is not one of a workflow's files";
    UnknownPattern = "T1004", Error, "an orchestration pattern is unknown";
    UnknownTrigger = "T1005", Error, "a trigger is unknown, or says nothing";
    UnknownAgent = "T1006", Error, "an entry names an agent that the workflow does not have";
    AgentOfTrigger = "T1007", Error, "the agent of a lifecycle tool is missing, or does not fit its trigger";
    DuplicateEntry = "T1008", Error, "two entries of a workflow's file have the same name";
    BadPrompt = "T1009", Error, "an agent of a workflow has no prompt, or more than one";
    AutoToolMode = "T1010", Error, "auto_tool_mode lacks what it needs";
    UnknownTool = "T1011", Error, "an entry names a tool that the workflow does not have";
    BadHandoff = "T1012", Error, "a handoff contradicts itself, or lacks what it needs";
    UnknownVariable = "T1013", Error, "a variable that is named is not declared";
    UnknownSource = "T1014", Error, "the source of a variable is unknown, or is refused";
    BadVariable = "T1015", Error, "a variable cannot be declared so";
    VariableCycle = "T1016", Error, "computed variables need each other in a circle";
    UnknownOutput = "T1017", Error, "a model of a structured output is not there";
    BadOutput = "T1018", Error, "a model of a structured output cannot be used";
    UnknownMessageHook = "T1019", Error, "a type of message hook is unknown";
    UnknownWorkflow = "T1020", Error, "a workflow that is named is not there";
    WorkflowCycle = "T1021", Error, "workflows need each other in a circle";
    BadJourney = "T1022", Error, "a journey cannot be made so";
    NotInTenure = "T1023", Error, "a workflow asks for something that Tenure does in another way";
    UnknownDatabase = "T1024", Error, "a database that a variable needs is not declared";
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_well_formed_unique_and_ascending() {
        let codes: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert!(codes.windows(2).all(|pair| pair[0] < pair[1]), "{codes:?}");
        for code in Code::ALL {
            let text = code.as_str();
            assert!(text.len() == 5 && text.starts_with('T'), "{text}");
            assert!(text[1..].bytes().all(|byte| byte.is_ascii_digit()), "{text}");
            assert!(!code.meaning().is_empty() && !code.meaning().ends_with('.'), "{text}");
        }
    }

    #[test]
    fn codes_of_the_ninth_group_are_warnings() {
        for code in Code::ALL.iter().filter(|code| code.as_str().starts_with("T09")) {
            assert_eq!(code.severity(), Severity::Warning, "{code}");
        }
    }
}
