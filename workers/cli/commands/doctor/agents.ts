import { type AgentPackage, createPackages } from '../../../../infra/agents/packages.ts';
import { type Look, ok } from './check.ts';

/** The agents whose programs come from npm, and whether they have come yet. */
export const checkAgents: Look = async function* ({ cacheDir }) {
  const packages = await createPackages({ cacheDir }).list();
  const here = packages.filter(({ installed }) => installed);
  const later = packages.filter(({ installed }) => !installed);
  const found = [
    ...(here.length === 0 ? [] : [`${names(here)} from npm`]),
    ...(later.length === 0 ? [] : [`${names(later)} will come from npm with the first rollout`]),
  ];
  yield ok('agents', `mini, oracle, nop; ${found.join('; ')}`);
};

const names = (packages: readonly AgentPackage[]): string =>
  packages.map(({ agent, version }) => `${agent} ${version}`).join(', ');
