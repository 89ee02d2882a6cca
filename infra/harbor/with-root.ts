import { stringify } from 'smol-toml';
import { isRecord } from '../is-record.ts';
import type { FileTree } from '../sandbox/file-tree.ts';
import { isRoot } from './agent-account.ts';
import { instructions } from './dockerfile.ts';
import { parseToml } from './task-toml.ts';

const file = 'task.toml';

/**
 * Returns the files of a task whose agent is root, as in Harbor, unless the task names another account: in its `task.toml`, or by
 * the last `USER` of its Dockerfile. Throws MalformedTask for a file that is no TOML.
 */
export function withRoot(tree: FileTree): FileTree {
  const entry = tree.get(file);
  if (entry === undefined || hasAccount(textOf(tree, 'environment/Dockerfile'))) return tree;
  const toml = parseToml(textOf(tree, file));
  if (!isRecord(toml)) return tree;
  const agent = isRecord(toml.agent) ? toml.agent : {};
  if (agent.user !== undefined) return tree;
  const text = stringify({ ...toml, agent: { ...agent, user: 'root' } });
  return new Map([...tree, [file, { ...entry, bytes: Buffer.from(text) }]]);
}

/** Whether the image of a Dockerfile runs commands under an account other than root. */
function hasAccount(dockerfile: string): boolean {
  const last = instructions(dockerfile).findLast(({ keyword }) => keyword === 'USER' || keyword === 'FROM');
  return last?.keyword === 'USER' && !isRoot(last.rest.split(':')[0]);
}

const textOf = (tree: FileTree, path: string): string => new TextDecoder().decode(tree.get(path)?.bytes);
