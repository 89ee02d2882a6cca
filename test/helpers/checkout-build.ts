import { join } from 'node:path';
import { cacheDirectory } from '../../infra/process/cache.mjs';
import { withLock } from '../../infra/process/file-lock.ts';

/** Does work that builds the checkout and reads the result, `dist/`; no other test builds a checkout at the same time. */
export const withCheckoutBuild = <Result>(work: () => Promise<Result>): Promise<Result> =>
  withLock(join(cacheDirectory(process.env), 'checkout-build.lock'), work);
