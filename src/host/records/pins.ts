/** Lists, adds and removes the facts that stay in the system prompt of an agent. */

import { mkdirSync } from 'node:fs'
import { quote } from '../../kit/text.ts'
import { agentFolder } from '../../memory/agent-files/agent-folder.ts'
import { openPins } from '../../memory/agent-files/agent-memory.ts'
import type { Pin, PinResult } from '../../memory/agent-files/pins.ts'
import type { Setup } from '../api.ts'
import type { HostRecords } from '../contract/records-api.ts'
import { FailureError } from '../failure.ts'
import { agentProfileOf, agentsOf } from '../setup/agent-profile.ts'

/** `unreadable` counts lines that are no pins; they stay in the file. */
export type ListedPins = { readonly pins: readonly Pin[]; readonly unreadable: number }

export type PinRecords = HostRecords['pins'] & { listed(agent?: string): ListedPins }

export function pinRecords(setup: Setup): PinRecords {
  /** The name of an agent is never a path. @throws FailureError `usage` when no agent has that id */
  function optionsOf(agent: string | undefined): Parameters<typeof openPins>[0] {
    const { config, paths, log } = setup
    const there = agentsOf(setup)
    if (agent !== undefined && !there.includes(agent))
      throw new FailureError('usage', `no agent ${quote(agent)}; there are: ${there.join(', ')}`)
    const id = agent ?? agentProfileOf(setup).id
    return { folder: agentFolder({ agents: paths.agents, id, chosen: config.memory.agentDir }), now: Date.now, log }
  }

  function toChange(agent: string | undefined) {
    const options = optionsOf(agent)
    mkdirSync(options.folder, { recursive: true, mode: 0o700 })
    return openPins(options)
  }

  function listed(agent?: string): ListedPins {
    const { trouble, ...found } = openPins(optionsOf(agent)).list()
    if (trouble !== undefined) throw new FailureError('error', trouble)
    return found
  }

  return {
    listed,
    list: (agent) => listed(agent).pins,
    add: (text, agent) => done(toChange(agent).add(setup.redactor.text(text))),
    remove: (number, agent) => done(toChange(agent).remove(number)),
  }
}

function done(pinned: PinResult): Pin {
  if (pinned.ok) return pinned.pin
  throw new FailureError('error', pinned.message)
}
