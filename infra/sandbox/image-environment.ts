import type { Command } from './sandbox.ts';

/*
 * Two environments of a sandbox. What temper itself runs has temper's own: it finds its programs where no agent can put one, and
 * gets no variable of the image, which could have a shell, a loader or an interpreter run what an agent has written. A command
 * that is started for an agent or for a task enters the image's environment, which is exactly as the image sets it.
 */

type Argv = Command['argv'];
type Variables = Readonly<Record<string, string>>;
/** A command that enters the image's environment. */
type Entering = { readonly argv: Argv; readonly entersImage: true };

const enterVariable = 'TEMPER_ENTER';
const namesVariable = 'TEMPER_NAMES';
const heldPrefix = 'TEMPER_SET_';

/**
 * The shell code by which a script of temper's own that has `entersImage` enters the image's environment, outside any function. It
 * runs in sh and bash.
 */
export const enterImage = `eval "\${${enterVariable}:?}"`;

/** Replaces the program $1 by its path where temper's own programs are, if it is there. */
const find = `
case $1 in */*) ;; *)
  IFS=:
  for temper_d in $PATH; do
    [ -f "$temper_d/$1" ] && [ -x "$temper_d/$1" ] || continue
    temper_d=$temper_d/$1; shift; set -- "$temper_d" "$@"; break
  done
  unset IFS ;;
esac
`;

/** Starts the command $@ in the image's environment. */
const start = `${enterImage}\nexec "$@"`;

/** Returns a command that is run in the image's environment and found by the image's PATH: an agent's. */
export const byImage = (argv: Argv): Entering => ({
  argv: ['/bin/sh', '-c', start, 'temper', ...argv],
  entersImage: true,
});

/**
 * Returns a command that is run in the image's environment although temper names its program, which is found like temper's own
 * programs where it can be: the shell of a task's tests or set-up.
 */
export const inImage = (argv: Argv): Entering => ({
  argv: ['/bin/sh', '-c', `${find}${start}`, 'temper', ...argv],
  entersImage: true,
});

/**
 * The code of `enterImage`. What was exported until then comes after the image's own variables, apart from the search path, and
 * last what was held back for the command. Bash in its POSIX mode ends at a variable that it does not let be set, such as UID.
 * `fromImage` is the code that exports the image's variables.
 */
const enter = (fromImage: string): string => `
case \${BASH_VERSION-} in ?*) set +o posix ;; esac
temper_given=$(unset PATH; export -p)
${fromImage}
eval "$temper_given"
for temper_name in $${namesVariable}; do
  eval "export $temper_name=\\"\\$${heldPrefix}$temper_name\\""; unset "${heldPrefix}$temper_name"
done
unset temper_given temper_name temper_d ${namesVariable} ${enterVariable}
`;

/** Variables that a command has before it enters the image's environment: temper's own, and those that no shell can set. */
const isAtOnce = (name: string): boolean => /^(HOME|LANG|TEMPER_.*|.*[^A-Za-z0-9_].*|[0-9].*)$/.test(name);

/**
 * Returns the variables with which a command is started. Those of one that enters the image's environment are held back until then,
 * since they, too, may decide what a shell or a loader runs.
 */
export function startVariables(
  given: Variables,
  { entersImage }: Pick<Command, 'entersImage'>,
  fromImage: string,
): Variables {
  if (entersImage !== true) return given;
  const all = Object.entries(given);
  const held = all.filter(([name]) => !isAtOnce(name));
  return {
    ...Object.fromEntries(all.filter(([name]) => isAtOnce(name))),
    ...Object.fromEntries(held.map(([name, value]) => [`${heldPrefix}${name}`, value])),
    [namesVariable]: held.map(([name]) => name).join(' '),
    [enterVariable]: enter(fromImage),
  };
}
