import type { Config } from '../../../../infra/settings/config.ts';
import { openObjects } from '../../../../infra/store/shared-state.ts';
import { requireUsable } from '../../../../infra/store/usable.ts';
import { errorMessage } from '../../../../workflows/contracts/error-message.ts';
import { type Check, missing, ok, type RunChecks } from './checks.ts';

/** Checks by the kind of the store. A home need not exist before the first stack. */
const checks: Readonly<Record<Config['store']['kind'], (config: Config) => Promise<Check>>> = {
  directory: async ({ home }) => ok('store', `${home} on this machine`),
  s3: async ({ store }) => {
    const objects = await openObjects(store);
    try {
      await requireUsable(objects);
      return ok('store', `${objects.location}: reads, conditional writes, listing and removal work`);
    } catch (error) {
      return missing('store', errorMessage(error), 'correct TEMPER_STORE, its endpoint or region, or the credentials');
    }
  },
};

/** Checks the place of the state that all processes of the stack share. */
export const checkStore: RunChecks = async function* (config) {
  yield await checks[config.store.kind](config);
};
