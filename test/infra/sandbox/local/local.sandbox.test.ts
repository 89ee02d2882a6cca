import { createHelperSpawner } from '../../../../infra/process/spawner/through-helper.ts';
import { sandboxContract } from '../contract.ts';
import { localSubject } from './subject.ts';

const title = 'local sandboxes whose commands a helper starts';
sandboxContract(localSubject(title, { createSpawner: createHelperSpawner }));
