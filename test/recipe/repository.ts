import type { ToolCall } from '../../infra/kits/chat-tokens/index.ts';
import { type Bug, sourceOf } from '../../infra/tasks/generated/bug.ts';

/**
 * A generated task's repository in memory. Answers mini's tool calls as a sandbox would, as far as a tiny policy makes them.
 * Only the search for a recipe uses it.
 */
export interface Repository {
  /** Answers a call; null ends the rollout. */
  call(call: ToolCall): string | null;
  /** Whether the tests pass. */
  solved(): boolean;
}

export function openRepository(bug: Bug): Repository {
  const path = `${bug.file}.js`;
  let source = sourceOf(bug, bug.wrong.symbol);
  const right = sourceOf(bug, bug.goal.symbol);

  function edit(args: Readonly<Record<string, unknown>>): string {
    const { path: given, old, new: replacement } = args;
    if (typeof given !== 'string' || typeof old !== 'string' || typeof replacement !== 'string')
      return 'error: expected a string';
    if (given !== path) return `error: ENOENT: no such file or directory, open '/workspace/${given}'`;
    const times = source.split(old).length - 1;
    if (old === '' || times !== 1) return `error: the old text occurs ${times} times in ${given}, expected once`;
    source = source.replace(old, () => replacement);
    return 'edited';
  }

  return {
    call({ name, arguments: text }) {
      const args: Record<string, unknown> = JSON.parse(text);
      if (name === 'submit') return null;
      if (name === 'edit') return edit(args);
      if (name === 'bash') return args.command === `cat ${path}` ? source.trimEnd() : '[exit status 1]';
      return `error: expected one of bash, edit, submit, got ${JSON.stringify(name)}`;
    },
    solved: () => source === right,
  };
}
