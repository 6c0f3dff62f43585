/** Starts the service and waits until its server answers, so that "started" is only said when that is true. */

import { readFileSync } from 'node:fs'
import type { CliContext } from '../../../channels/terminal/context.ts'
import { askGateway } from '../../../host/access/gateway-probe.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import type { ServiceManager } from '../../../service/unit/service-run.ts'
import { serviceUrl } from './service-setup.ts'

/** How long a server may take until it answers. */
const patienceMs = 10_000
const lookMs = 50

/** @returns where it answers, to be said after "started". @throws Error that says why it ended, or that the address is taken */
export async function startService(context: CliContext, manager: ServiceManager): Promise<string> {
  const url = serviceUrl(loadSetup(context), manager.argv())
  if (url !== undefined) await assertFree(url)
  await manager.start()
  if (url === undefined) return '; "service logs" says on which port'
  for (const deadline = Date.now() + patienceMs; Date.now() < deadline; await Bun.sleep(lookMs)) {
    if ((await askGateway(url)).kind === 'ours') return `: ${url}`
    const { running, restarts = 0 } = await manager.state()
    if (!running) throw new Error(`it ended right after its start${lastWordsIn(manager)}; see "service logs"`)
    if (restarts > 0) throw new Error(`it ends right after each start${lastWordsIn(manager)}; it is tried again until "service stop"`)
  }
  throw new Error(`it runs, but nothing answers at ${url} after ${patienceMs / 1_000} s; see "service logs"`)
}

async function assertFree(url: string): Promise<void> {
  const { kind } = await askGateway(url)
  if (kind === 'nothing') return
  const who = kind === 'ours' ? 'another server of ours' : 'another program'
  throw new Error(`${who} listens at ${url} already; stop it, or choose another port: braidclaw service install --port PORT`)
}

/** The last line of its log that tells of an error. */
function lastWordsIn(manager: ServiceManager): string {
  const log = manager.log({ lines: 1, follow: false })
  if (!('path' in log)) return ''
  try {
    const said = readFileSync(log.path, 'utf8')
      .split('\n')
      .findLast((line) => line.includes('error: '))
    return said === undefined ? '' : `: ${said.slice(said.indexOf('error: ') + 'error: '.length)}`
  } catch {
    return ''
  }
}
