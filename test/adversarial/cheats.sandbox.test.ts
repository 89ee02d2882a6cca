import { cheats, honest } from './cheats.ts';
import { fromAnotherAccount, honestFromAnotherAccount } from './other-account.ts';
import { testAgents } from './suite.ts';
import { winning } from './winning.ts';

testAgents('local', {
  cheats: [...cheats, ...fromAnotherAccount],
  winning,
  honest: [...honest, ...honestFromAnotherAccount],
});
