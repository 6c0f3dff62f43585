/**
 * Implements `doctor`: it checks the installation and says how to fix each problem. It changes nothing, except that it ends sandbox
 * processes of a killed run and removes caches of commands that nobody uses.
 */

import { existsSync } from 'node:fs'
import type { CliSetup } from '../../../channels/terminal/context.ts'
import { FailureError } from '../../../host/failure.ts'
import { openRecords } from '../../../host/open/open-records.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { atEnd } from '../../../kit/errors.ts'
import type { Memory } from '../../../memory/memory.ts'
import { command, type Flags } from '../../args/command.ts'
import { jsonFlag, workspaceFlag } from '../../args/turn-flags.ts'
import { CliExit, exitCodes } from '../../exit.ts'
import { gatewaySettings, managerOf } from '../service/service.ts'
import { dashboardFindings, gatewayFindings } from './doctor-gateway.ts'
import {
  bad,
  checkFindings,
  type Finding,
  homeFindings,
  hookFindings,
  leftovers,
  machineFindings,
  note,
  pluginFindings,
  recordFindings,
  serverFindings,
  stopFinding,
} from './doctor-home.ts'
import { costFindings, foundModels, providerFindings, windowFindings } from './doctor-providers.ts'
import { probe, sandboxFindings } from './doctor-sandbox.ts'
import { channelFindings, scheduleFindings, serviceFindings, sopFindings, traceFindings, troubleFindings } from './doctor-service.ts'

const flags = {
  probeSandbox: { type: 'boolean', about: 'Try to get out of the sandbox in forty ways (exit 1 if one succeeds)' },
  ...workspaceFlag,
  ...jsonFlag,
} as const satisfies Flags

export const doctor = command({
  flags: flags,
  examples: [
    ['', 'read, then do what it says'],
    ['--probe-sandbox', 'prove that commands are confined'],
    ['--json', 'for scripts'],
  ],
  async run(context, { workspace, probeSandbox = false, json = false }) {
    const loaded = loadSetup(context, { workspace })
    if (probeSandbox) return probe(loaded, json)
    const { setup, findings: models } = await foundModels(loaded)
    const findings = setup.redactor.value([
      ...homeFindings(setup),
      ...hookFindings(setup),
      ...providerFindings(setup),
      ...models,
      ...(await costFindings(setup)),
      ...(await recorded(setup)),
      stopFinding(setup),
      // Before a sandbox of the home is made, which ends them too.
      ...leftovers(setup),
      ...(await sandboxFindings(setup)),
      ...pluginFindings(setup),
      ...serverFindings(setup),
      ...checkFindings(setup),
      ...channelFindings(setup),
      ...(await traceFindings(setup)),
      ...machineFindings(),
    ])
    if (json) context.process.stdout.write(`${JSON.stringify(findings)}\n`)
    else context.process.stdout.write(findings.map(told).join(''))
    if (findings.some(({ state }) => state === 'bad')) throw new CliExit(exitCodes.error)
  },
})

function told({ what, state, says, remedy = [] }: Finding): string {
  const first = `${{ ok: '✓', note: '·', bad: '✗' }[state]} ${what.padEnd(11)} ${says}\n`
  return first + remedy.map((line) => `${' '.repeat(14)}${line}\n`).join('')
}

/** Checks what depends on the records. They may be absent or damaged; everything else is checked all the same. */
async function recorded(setup: CliSetup): Promise<Finding[]> {
  const found = opened(setup)
  const memory = 'says' in found ? undefined : found
  using _end = atEnd(() => memory?.close())
  const manager = await managerOf(setup.context)
  const installed = existsSync(manager.file)
  const gateway = await gatewayFindings({ memory, settings: gatewaySettings(setup, installed ? manager.argv() : []), installed })
  return [
    ...(await windowFindings(setup, memory)),
    ...('says' in found
      ? [found]
      : [
          ...recordFindings(setup, found),
          ...(await scheduleFindings(setup, found)),
          ...(await sopFindings(setup, found)),
          ...troubleFindings(found),
        ]),
    ...(await serviceFindings(manager)),
    ...gateway,
    ...(gateway.length > 0 ? await dashboardFindings(async () => (await import('../../../dashboard/files.ts')).dashboardFiles()) : []),
  ]
}

function opened(setup: CliSetup): Memory | Finding {
  const { path } = setup.config.memory
  if (!existsSync(path)) return note('memory', `${path} does not exist yet`)
  try {
    return openRecords(setup)
  } catch (error) {
    if (error instanceof FailureError) return bad('memory', error.message)
    throw error
  }
}
