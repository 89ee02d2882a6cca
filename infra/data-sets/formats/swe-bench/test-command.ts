/** The command that runs the tests of a repository whose rows do not contain one, and the parser of its output. */
export interface TestCommand {
  readonly command: string;
  readonly logParser: string;
  /** Commands that the shell of the tests runs before them, in the workdir. */
  readonly before?: readonly string[];
  /** Commands that a checkout needs before its base commit is made. They may run twice. */
  readonly checkedOut?: readonly string[];
  /** Set when parts of the workspace are compiled. An evaluation does not compile them again. */
  readonly compiled?: true;
  /** Set when the command names its tests. Otherwise those of the test patch are added to it. */
  readonly namesTests?: true;
}

/** The test commands of a data set's repositories. */
export interface TestCommands {
  readonly repositories: readonly string[];
  /** Returns null when the command of this repository, or of this version, is unknown. */
  find(repository: string, version: string | null): TestCommand | null;
  /** The parser for a repository, which does not depend on the version. */
  parser(repository: string): string | null;
  /** The known versions, or an empty list when they make no difference. */
  versions(repository: string): readonly string[];
}

/** Joins the commands of two sets, which have no repository in common. */
export const eitherOf = (one: TestCommands, other: TestCommands): TestCommands => ({
  repositories: [...one.repositories, ...other.repositories],
  find: (repository, version) => one.find(repository, version) ?? other.find(repository, version),
  parser: (repository) => one.parser(repository) ?? other.parser(repository),
  versions: (repository) => [...one.versions(repository), ...other.versions(repository)],
});

/** Returns the value of a table under a name that a row gives, whatever that is; a bare look-up would find `constructor`. */
export const named = <Value>(table: Readonly<Record<string, Value>>, name: string): Value | undefined =>
  Object.hasOwn(table, name) ? table[name] : undefined;
