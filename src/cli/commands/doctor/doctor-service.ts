/** Checks for `doctor` the service: whether it is installed, runs, and runs this program. */

import { existsSync } from 'node:fs'
import { ownProgram } from '../../../service/own-program.ts'
import type { ServiceHint, ServiceManager, ServiceState } from '../../../service/unit/service-run.ts'
import type { Finding } from './doctor-finding.ts'

const what = 'service'

export async function serviceFindings(manager: ServiceManager): Promise<Finding[]> {
  if (!existsSync(manager.file))
    return [
      { what, state: 'note', says: 'not installed', remedy: ['to keep a server running: braidclaw service install (docs/service.md)'] },
    ]
  try {
    const state = await manager.state()
    return [running(manager, state), ...program(manager), ...((await manager.hints?.()) ?? []).map(hinted)]
  } catch (error) {
    const says = error instanceof Error ? error.message : String(error)
    return [{ what, state: 'bad', says, remedy: ['braidclaw service status'] }]
  }
}

function running({ kind, file }: ServiceManager, { running, problem, restarts = 0 }: ServiceState): Finding {
  const again = restarts > 0 ? `, started again ${restarts} times` : ''
  if (running) return { what, state: 'ok', says: `runs (${kind})${again}: ${file}` }
  const why = problem === undefined ? '' : `: ${problem}`
  return {
    what,
    state: 'bad',
    says: `installed (${kind}) and not running${why}`,
    remedy: ['braidclaw service start', 'braidclaw service logs'],
  }
}

function program(manager: ServiceManager): Finding[] {
  const [installed] = manager.argv() ?? []
  if (installed === undefined || installed === ownProgram()) return []
  const gone = existsSync(installed) ? '' : ', which does not exist'
  const says = `the service runs ${installed}${gone}; this program is ${ownProgram()}`
  return [{ what, state: 'bad', says, remedy: ['braidclaw service install, with the flags you want, then braidclaw service restart'] }]
}

function hinted({ says, remedy }: ServiceHint): Finding {
  return { what, state: 'note', says, remedy: [remedy] }
}
