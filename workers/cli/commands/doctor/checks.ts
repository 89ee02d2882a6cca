import { stat } from 'node:fs/promises';
import { createAgents } from '../../../../infra/agents/index.ts';
import { type AgentPackage, createPackages } from '../../../../infra/agents/packages.ts';
import { checkPrefix, loadModel, type Model } from '../../../../infra/kits/chat-tokens/index.ts';
import type { Config } from '../../../../infra/settings/config.ts';
import { errorMessage } from '../../../../workflows/contracts/error-message.ts';

/** One line of the doctor's report. */
export interface Check {
  readonly name: string;
  /** `missing`: temper cannot work without it; `warn`: something does not work. */
  readonly state: 'ok' | 'warn' | 'missing';
  readonly found: string;
  /** The fix; null if nothing has to be fixed. */
  readonly remedy: string | null;
  /** The figures behind `found`, for `--json`. */
  readonly figures?: Readonly<Record<string, string | number | null>>;
}

export interface DoctorRequest {
  /** Whether to register the search attributes first. */
  readonly register: boolean;
  /** Model directory to check. */
  readonly model: string | undefined;
}

/** Runs the checks of one subject. */
export type RunChecks = (config: Config, request: DoctorRequest) => AsyncIterable<Check>;

export const ok = (name: string, found: string): Check => ({ name, state: 'ok', found, remedy: null });

export const warn = (name: string, found: string, remedy: string): Check => ({ name, state: 'warn', found, remedy });

export const missing = (name: string, found: string, remedy: string): Check => ({
  name,
  state: 'missing',
  found,
  remedy,
});

/** Lists the agents, and whether the packages of those from npm are installed. */
export const checkAgents: RunChecks = async function* ({ cacheDir }) {
  const packages = await createPackages({ cacheDir }).list();
  const packaged = packages.map(({ agent }): string => agent);
  const builtIn = createAgents({ cacheDir }).names.filter((name) => !packaged.includes(name));
  const installed = packages.filter((one) => one.installed);
  const later = packages.filter((one) => !one.installed);
  const found = [
    `built in: ${builtIn.join(', ')}`,
    ...(installed.length === 0 ? [] : [`installed from npm: ${names(installed)}`]),
    ...(later.length === 0 ? [] : [`installed from npm at their first rollout: ${names(later)}`]),
  ];
  yield ok('agents', found.join('; '));
};

const names = (packages: readonly AgentPackage[]): string =>
  packages.map(({ agent, version }) => `${agent} ${version}`).join(', ');

/** Checks whether only the account of the stack may read the files with secrets. */
export const checkKeyFiles: RunChecks = async function* ({ keyFiles }) {
  for (const file of keyFiles) {
    const mode = await stat(file).then(
      (found) => found.mode & 0o777,
      () => null, // it is created, or its reader says what is wrong
    );
    if (mode === null || (mode & forOthers) === 0) continue;
    yield warn(
      'secret',
      `every account of this machine may use ${file} (mode ${mode.toString(8)})`,
      `chmod 600 ${file}`,
    );
  }
};

/** The rights of those who are neither the owner nor in the group, which Kubernetes needs for mounted secrets. */
const forOthers = 0o007;

/** Checks which syntax the gateway reads in a model's replies, and which conversations its chat template can extend. */
export const checkModel: RunChecks = async function* (_, { model: dir }) {
  if (dir === undefined) return;
  let model: Model;
  try {
    model = await loadModel(dir);
  } catch (error) {
    yield missing('model', errorMessage(error), 'name a model directory with tokenizer.json and a chat template');
    return;
  }
  yield ok('model', `${model.name}: replies in the ${model.family.name} syntax`);
  for (const { what, kept, reason } of checkPrefix(model)) {
    yield kept
      ? ok('prefix', `${what} extends the branch`)
      : warn(
          'prefix',
          `${what} forks: ${reason}`,
          'each such turn begins its own segment; a variant of the chat template that keeps earlier turns unchanged avoids that',
        );
  }
};
