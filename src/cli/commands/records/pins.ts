/** Implements `memory pin | pins | unpin`: facts that stay in the system prompt of an agent. */

import { mkdirSync } from 'node:fs'
import type { CliContext } from '../../../channels/terminal/context.ts'
import { agentProfileOf } from '../../../host/setup/agent-profile.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { count } from '../../../kit/count.ts'
import { agentFolder } from '../../../memory/agent-files/agent-folder.ts'
import { openPins } from '../../../memory/agent-files/agent-memory.ts'
import type { Pin, Pinned, Pins } from '../../../memory/agent-files/pins.ts'
import type { Arguments, Command, Flags } from '../../args/command.ts'
import { agentFlag, jsonFlag } from '../../args/flags.ts'
import { CliExit, exitCodes } from '../../exit.ts'

const flags = { ...agentFlag, ...jsonFlag } as const satisfies Flags
const pinArgs = { fact: { type: 'text', many: true, about: 'What is to be kept, word for word' } } as const satisfies Arguments
const unpinArgs = { number: { type: 'whole', about: 'As "memory pins" shows it' } } as const satisfies Arguments

export const pin = {
  flags,
  args: pinArgs,
  examples: [['"I live in Lisbon"', 'for the agent of every turn']],
  run(context, { agent, json = false }, { fact: words }) {
    const text = context.redactor.text(words.join(' '))
    const pinned = mustPin(pinsToChange(context, agent).add(text))
    context.process.stdout.write(json ? `${JSON.stringify(pinned)}\n` : `pinned as ${pinned.number}: ${pinned.text}\n`)
  },
} as const satisfies Command<typeof flags, typeof pinArgs>

export const pins = {
  flags,
  examples: [['--agent coder', 'to one agent']],
  run(context, { agent, json = false }) {
    const { pins: found, unreadable, trouble } = openPins(pinsOf(context, agent)).list()
    if (trouble !== undefined) throw new CliExit(exitCodes.error, `error: ${trouble}`)
    if (unreadable > 0) context.process.stderr.write(`warning: pins.jsonl has ${count(unreadable, 'unreadable line')}, left aside\n`)
    if (found.length === 0 && !json) context.process.stderr.write('nothing is pinned\n')
    context.process.stdout.write(json ? `${JSON.stringify(found)}\n` : found.map(pinLine).join(''))
  },
} as const satisfies Command<typeof flags>

export const unpin = {
  flags,
  args: unpinArgs,
  examples: [['2', 'the second']],
  run(context, { agent, json = false }, { number }) {
    const unpinned = mustPin(pinsToChange(context, agent).remove(number))
    context.process.stdout.write(json ? `${JSON.stringify(unpinned)}\n` : `unpinned: ${unpinned.text}\n`)
  },
} as const satisfies Command<typeof flags, typeof unpinArgs>

function pinLine({ number, text }: Pin): string {
  return `${number}  ${text.replaceAll('\n', '\n   ')}\n`
}

/** Returns the folder of the requested agent. @throws FailureError `usage` when there is no such agent */
function pinsOf(context: CliContext, agent: string | undefined): Parameters<typeof openPins>[0] {
  const setup = loadSetup(context, agent === undefined ? {} : { agent })
  const { config, paths, log } = setup
  const folder = agentFolder({ agents: paths.agents, id: agentProfileOf(setup).id, chosen: config.memory.agentDir })
  return { folder, now: Date.now, log }
}

function pinsToChange(context: CliContext, agent: string | undefined): Pins {
  const options = pinsOf(context, agent)
  mkdirSync(options.folder, { recursive: true, mode: 0o700 })
  return openPins(options)
}

function mustPin(pinned: Pinned): Pin {
  if (pinned.ok) return pinned.pin
  throw new CliExit(exitCodes.error, `error: ${pinned.message}`)
}
