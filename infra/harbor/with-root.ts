import { stringify } from 'smol-toml';
import { isRecord } from '../is-record.ts';
import type { FileTree } from '../sandbox/file-tree.ts';
import { isRoot } from './agent-account.ts';
import { readComposeFile } from './compose-file.ts';
import { readDockerfile } from './dockerfile.ts';
import { environmentFiles } from './environment-files.ts';
import { dockerfileSource } from './main-image.ts';
import { plainDockerfile } from './plain-dockerfile.ts';
import { parseTaskToml, parseToml } from './task-toml.ts';

const file = 'task.toml';

/**
 * Returns the files of a task whose agent is root, as in Harbor, unless the task names another account: in its `task.toml`, for all
 * or for a single step, in its compose file, or by the last `USER` of its Dockerfile. Throws MalformedTask and UnsupportedTask for
 * files that no task may have.
 */
export function withRoot(tree: FileTree): FileTree {
  const entry = tree.get(file);
  if (entry === undefined) return tree;
  const written = new TextDecoder().decode(entry.bytes);
  const parsed = parseTaskToml(written);
  const environment = environmentFiles(tree);
  const { main } = readComposeFile(environment, parsed);
  const ofImage = main.user ?? userOf(dockerfileSource({ environment, main }));
  const others = [ofImage?.split(':')[0], ...parsed.steps.map((step) => step.agent.user)];
  if (parsed.agent.user !== undefined || others.some((user) => user !== undefined && !isRoot(user))) return tree;
  const toml = parseToml(written);
  if (!isRecord(toml)) return tree;
  const agent = isRecord(toml.agent) ? toml.agent : {};
  const text = stringify({ ...toml, agent: { ...agent, user: 'root' } });
  return new Map([...tree, [file, { ...entry, bytes: Buffer.from(text) }]]);
}

/** The account of the commands in the image of a Dockerfile; undefined where it names none. */
const userOf = (dockerfile: string | null): string | undefined =>
  dockerfile === null ? undefined : (readDockerfile(plainDockerfile(dockerfile).source).user ?? undefined);
