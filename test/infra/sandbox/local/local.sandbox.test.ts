import { createHelperSpawner } from '../../../../infra/process/spawner/through-helper.ts';
import { sandboxContract } from '../contract.ts';
import { faultContract } from '../contract-faults.ts';
import { localSubject } from './subject.ts';

const title = 'local sandboxes whose commands a helper starts';
const subject = localSubject(title, { createSpawner: createHelperSpawner });
sandboxContract(subject);

const noNetwork = 'no network is between a host and its own directories';
faultContract({
  title: 'local sandboxes',
  image: subject.image,
  open: subject.open,
  faults: {
    loseCreation: noNetwork,
    throttle: noNetwork,
    retryAfter: noNetwork,
    lagLists: noNetwork,
    vanish: async (name) => {
      const other = subject.open(name.split('-').slice(0, 3).join('-'));
      await other.remove(name);
      await other.close();
    },
    cutStreams: 'it has no streams',
    endOf: 'nothing but temper ends it',
    skewClock: 'it has the clock of its host',
  },
});
