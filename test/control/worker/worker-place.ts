/** A worker in this process with a folder of its own, a program of the test as its runner, and what it left behind. */

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { channelRows } from '../../../src/channels/list.ts'
import { commandRunner } from '../../../src/control/runners/foreign-runners.ts'
import { openWaitingChanges } from '../../../src/control/worker/changes/waiting-changes.ts'
import { createCopies, tidyParked } from '../../../src/control/worker/changes/workspace-copies.ts'
import { openWorker } from '../../../src/control/worker/open-worker.ts'
import { noSkills, type Worker, type WorkerOptions } from '../../../src/control/worker/worker-options.ts'
import type { WorkerPort } from '../../../src/control/worker/worker-port.ts'
import type { Host } from '../../../src/host/api.ts'
import { silentContext } from '../../../src/host/open/library.ts'
import { openHost } from '../../../src/host/open/open-host.ts'
import { loadSetup } from '../../../src/host/setup/setup.ts'

export type WorkerPlace = {
  readonly dir: string
  readonly workspace: string
  readonly host: Host
  readonly said: string[]
  /** A worker whose runner is this shell script. */
  worker(port: WorkerPort, script: string, more?: Partial<WorkerOptions>): Worker
  sessions(agentId?: string): readonly string[]
  log(agentId?: string): string
  close(): Promise<void>
}

export async function workerPlace(files: Readonly<Record<string, string>> = { 'notes.md': 'hello\n' }): Promise<WorkerPlace> {
  const dir = mkdtempSync(join(tmpdir(), 'braidclaw-worker-'))
  const [home, workspace, state] = [join(dir, '.braidclaw'), join(dir, 'work'), join(dir, 'cache')]
  for (const folder of [home, workspace, state]) mkdirSync(folder)
  for (const [name, text] of Object.entries(files)) writeFileSync(join(workspace, name), text)
  const context = { ...silentContext({ channels: channelRows, home, env: { HOME: dir, PATH: process.env.PATH } }), cwd: workspace }
  const setup = loadSetup(context, { workspace })
  const host = await openHost(setup, { ahead: false })
  const said: string[] = []
  const folders = { workspace, state, sessions: join(dir, 'sessions'), logs: join(dir, 'logs') }
  const text = (path: string) => {
    try {
      return readFileSync(path, 'utf8')
    } catch {
      return ''
    }
  }
  return {
    ...{ dir, workspace, host, said },
    worker(port, script, { agentId = 'a1', ...more } = {}) {
      const waiting = openWaitingChanges(join(state, 'waiting.json'), host)
      return openWorker({
        ...{ agentId, role: 'sysadmin', apiUrl: 'http://127.0.0.1:3100', port, folders },
        runner: { name: 'command', runner: commandRunner(['/bin/sh', '-c', script]), path: '/bin/sh' },
        ...{ env: { HOME: dir, PATH: process.env.PATH }, skills: noSkills, waitMs: 200, graceMs: 200 },
        copyWorkspace: createCopies({ host, setup, folder: join(state, 'copies'), agentId, onKept: waiting.add }),
        tidyCopies: (look) => tidyParked(join(state, 'copies'), look),
        reportDecided: waiting.reportDecided,
        clock: { now: Date.now, monotonic: () => performance.now(), random: Math.random },
        say: (line) => void said.push(line),
        ...more,
      })
    },
    sessions: (agentId = 'a1') =>
      text(join(folders.sessions, `${agentId}.jsonl`))
        .split('\n')
        .filter((line) => line !== ''),
    log: (agentId = 'a1') => text(join(folders.logs, `${agentId}.log`)),
    async close() {
      await host.close()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}
