/** Starts one PostgreSQL for all test files of a run as soon as the first of them asks, in which each makes databases of its own. */

import { careless, findProgram, type Postgres, startPostgres } from '../../test/control/support/postgres.ts'

export type PostgresOfRun = {
  /** Returns its Unix socket; undefined where PostgreSQL is not installed. */
  socket(): Promise<string | undefined>
  /** Stops it, if it was started, and removes its folder. */
  remove(): Promise<void>
}

export function postgresOfRun(scratch: string): PostgresOfRun {
  const state: { starting?: Promise<Postgres> } = {}
  return {
    async socket() {
      if (findProgram('initdb') === undefined) return undefined
      state.starting ??= startPostgres({ settings: careless, within: scratch })
      return (await state.starting).socket
    },
    async remove() {
      await (await state.starting?.catch(() => undefined))?.remove()
    },
  }
}
