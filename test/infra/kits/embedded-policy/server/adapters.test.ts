import { testAdapters } from '../../../../reference/adapters.ts';
import { startTestPolicy } from './policy-server.ts';

testAdapters('the embedded policy server', async () => ({
  ...(await startTestPolicy()),
  method: 'reload',
  tolerance: 0,
  tokens: [1, 5, 9, 13, 17, 21, 25, 29, 33, 37, 41, 45],
  firstVersion: 1,
}));
