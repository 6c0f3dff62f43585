/**
 * Preloaded into the executable: dies by kill -9 at one commit of its database. DIE_AT is `NUMBER:before` or `NUMBER:after`; with `count:FILE`
 * it writes into that file how many commits there were.
 */

import { Database } from 'bun:sqlite'
import { writeFileSync } from 'node:fs'

const [at = '', when = ''] = (process.env.DIE_AT ?? '').split(':')
const state = { commits: 0 }
const run = Database.prototype.run

function dieIf(reached: boolean): void {
  if (reached) process.kill(process.pid, 'SIGKILL')
}

Database.prototype.run = function (this: Database, ...given: Parameters<typeof run>) {
  if (given[0] !== 'COMMIT') return run.apply(this, given)
  state.commits += 1
  const isIt = String(state.commits) === at
  dieIf(isIt && when === 'before')
  const done = run.apply(this, given)
  dieIf(isIt && when === 'after')
  if (at === 'count') writeFileSync(when, String(state.commits))
  return done
}
