import { cheats, honest } from './cheats.ts';
import { fromAnotherAccount, honestFromAnotherAccount } from './other-account.ts';
import { tryAll } from './suite.ts';
import { winning } from './winning.ts';

tryAll('local', {
  cheats: [...cheats, ...fromAnotherAccount],
  winning,
  honest: [...honest, ...honestFromAnotherAccount],
});
