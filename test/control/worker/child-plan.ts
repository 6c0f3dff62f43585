/**
 * Starts children as a worker does, in a folder of the test, confined in each of the three ways. As a program, `child-plan.ts FOLDER WAY
 * SCRIPT`, it is a worker with one child that waits to be killed.
 */

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Confinement, ConfinementWay } from '../../../src/control/worker/child/child-confinement.ts'
import { type ChildRecords, openChildRecords } from '../../../src/control/worker/child/child-processes.ts'
import { type Child, type ChildPlan, startChild } from '../../../src/control/worker/child/start-child.ts'
import { sha256 } from '../../../src/kit/sha256.ts'

export type Yard = {
  readonly folder: string
  readonly copy: string
  readonly workspace: string
  readonly home: string
  readonly records: ChildRecords
  readonly output: () => string
  start(script: string, way: ConfinementWay, more?: Partial<ChildPlan>): Promise<Child>
  [Symbol.dispose](): void
}

/** Is used by nothing else on this machine; a worker of its own gets it from its test. */
export const token = Bun.env.TOKEN_OF_THE_TEST ?? `cpr_of-the-test-${process.pid}`

export function confinementOf(way: ConfinementWay): Confinement {
  const programs = { bubblewrap: 'bwrap', setpriv: 'setpriv' } as const
  const program = way === 'group' ? undefined : (Bun.which(programs[way]) ?? undefined)
  return { way, network: 'host', holds: [], ...(program ? { program } : {}) }
}

export function yard(folder = mkdtempSync(join(tmpdir(), 'braidclaw-child-'))): Yard {
  const at = (name: string) => join(folder, name)
  for (const name of ['copy', 'workspace', 'home']) mkdirSync(at(name), { recursive: true })
  const records = openChildRecords(at('records'))
  const said: string[] = []
  return {
    ...{ folder, copy: at('copy'), workspace: at('workspace'), home: at('home'), records, output: () => said.join('') },
    start: (script, way, more = {}) =>
      startChild({
        ...{ runId: 'RUN-001', tokenDigest: sha256(token), confinement: confinementOf(way), records },
        ...{ program: '/bin/sh', args: ['-c', script], scratch: at('scratch'), readable: [] },
        ...{ copy: at('copy'), workspace: at('workspace'), home: at('home'), userHome: '/root', path: '/usr/bin:/bin' },
        env: { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: at('home'), CONTROLPLANE_API_KEY: token },
        onOutput: (chunk) => void said.push(Buffer.from(chunk).toString()),
        ...more,
      }),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  }
}

if (import.meta.main) {
  const [, , folder = '', way = '', script = ''] = process.argv
  const child = await yard(folder).start(script, way as ConfinementWay)
  process.stdout.write('started\n')
  await child.ended
}
