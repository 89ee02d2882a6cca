// A host worker that leases uids for each of the directories of its arguments, one every 2 ms from a point in time on.
import { leaseAccounts } from '../../../../infra/sandbox/local/accounts.ts';

const everyMs = 2;
const [startMs, ...directories] = process.argv.slice(2);
const nowMs = (): number => performance.timeOrigin + performance.now();
const slots = directories.map((directory, index) => {
  while (nowMs() < Number(startMs) + index * everyMs);
  return leaseAccounts(directory).slot;
});
process.stdout.write(JSON.stringify(slots));
