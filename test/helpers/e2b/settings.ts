import { join } from 'node:path';
import type { E2bSettings } from '../../../infra/sandbox/e2b/settings.ts';
import type { E2bServer } from './server.ts';

const hourMs = 3_600_000;

/** The settings of a provider that uses this server. `home` is the directory with the operator's file of templates. */
export const e2bSettings = ({ url, key }: Pick<E2bServer, 'url' | 'key'>, home: string): E2bSettings => ({
  url,
  sandboxUrl: null,
  apiKey: async () => key,
  templates: join(home, 'e2b.json'),
  longestMs: 24 * hourMs,
  creates: 4,
});
