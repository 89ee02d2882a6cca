import { z } from 'zod';
import { number } from '../../../../workflows/contracts/input.ts';
import { readYaml } from '../../../compose/yaml.ts';
import { quote } from '../../shell.ts';

const typedCommands = z.array(
  z.looseObject({
    command: z.coerce.string(),
    min_timeout_sec: number(0, 1_000_000, 'seconds').default(0),
    max_timeout_sec: number(0, 1_000_000, 'seconds').default(180),
    block: z.boolean({ error: 'expected true or false' }).default(false),
    append_enter: z.boolean({ error: 'expected true or false' }).default(true),
  }),
  { error: 'expected a list of commands' },
);

/** Keys that end a line, as tmux names them. */
const enterKeys = new Set(['Enter', 'C-m', 'KPEnter', 'C-j', '^M', '^J']);

/**
 * Returns a script that types the commands of a `solution.yaml` into a terminal, as the original harness does: with tmux, which
 * the images of such tasks have. A command with `block` is waited for; another gets its least time. Names of keys, such as
 * `Escape` or `C-c`, are those keys.
 *
 * The script ends when the terminal waits for a command again. A program that then still has the terminal ends with it.
 */
export function typedSolution(source: string, file: string): string {
  const commands = readYaml(typedCommands, source, file);
  const lines = commands.map((typed) => {
    const keys = [typed.command, ...(typed.append_enter ? ['Enter'] : [])];
    const last = keys.at(-1) ?? '';
    const blocks = typed.block && (enterKeys.has(last) || /[\r\n]$/.test(last));
    return blocks
      ? `run ${typed.max_timeout_sec} ${withoutEnter(keys).map(quote).join(' ')}`
      : `type_in ${typed.min_timeout_sec} ${keys.map(quote).join(' ')}`;
  });
  return `${prologue}${lines.join('\n')}\n${epilogue}`;
}

/** Removes what would execute the keys: the blocking command that is added to them executes them all. */
function withoutEnter(keys: readonly string[]): readonly string[] {
  const last = keys.findLastIndex((key) => !enterKeys.has(key) && key.replace(/[\r\n]+$/, '') !== '');
  return keys.slice(0, last + 1).map((key, index) => (index === last ? key.replace(/[\r\n]+$/, '') : key));
}

/** The line by which such a script is known. */
export const typedMark = '# Types a solution into a terminal.';

const prologue = `#!/bin/bash
${typedMark}
command -v tmux >/dev/null || { echo 'solution.yaml is typed into a terminal, for which the image lacks tmux' >&2; exit 127; }
TMUX_TMPDIR=$(mktemp -d) || exit 1
export TMUX_TMPDIR TERM=\${TERM:-xterm-256color}
unset TMUX
trap 'tmux capture-pane -p -S - -t solution; tmux kill-server; rm -rf "$TMUX_TMPDIR"' EXIT
tmux -u new-session -x 160 -y 40 -d -s solution bash \\; set-option -t solution history-limit 50000 || exit 1
# Keys that come before the shell reads them would not be keys to it.
for _ in $(seq 300); do
  tmux capture-pane -p -t solution | grep -q . && break
  sleep 0.1
done
# type_in SECONDS KEY...
type_in() {
  tmux send-keys -t solution -- "\${@:2}" || exit 1
  sleep "$1"
}
# run SECONDS KEY...
run() {
  tmux send-keys -t solution -- "\${@:2}" '; tmux wait -S done' Enter || exit 1
  timeout "$1" tmux wait done || { echo "not done after $1 seconds: \${*:2}" >&2; exit 1; }
}
`;

/** Waits for the commands that were not waited for, unless a program has the terminal. */
const epilogue = `for _ in $(seq 50); do
  if [ "$(tmux display-message -p -t solution '#{pane_current_command}')" = bash ]; then
    run 60 true
    exit 0
  fi
  sleep 0.2
done
`;
