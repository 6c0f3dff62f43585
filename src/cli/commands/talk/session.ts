/** Implements `session load | append | count`: the messages of an agent's session, in a file that scripts read and write. */

import { existsSync } from 'node:fs'
import type { CliContext } from '../../../channels/terminal/context.ts'
import { readStdin } from '../../../channels/terminal/input-stream.ts'
import { stdinKind } from '../../../channels/terminal/tty.ts'
import { withMemory } from '../../../host/open/open-records.ts'
import { agentProfileOf, runAgent, soulOf } from '../../../host/setup/agent-profile.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import {
  appendSession,
  appendTrace,
  archiveSession,
  countSession,
  forgetPointer,
  loadSession,
  type SessionEntry,
} from '../../../memory/agent-files/session-file.ts'
import { command } from '../../args/command.ts'
import { agentFlag, jsonFlag } from '../../args/turn-flags.ts'
import { usageError } from '../../exit.ts'
import { printOne } from '../../print-list.ts'

/**
 * Implements `reset`: it archives the session of an agent, so that `-c` begins a new conversation. It deletes nothing; memory and receipts
 * stay.
 */
export const reset = command({
  flags: { ...agentFlag, ...jsonFlag },
  examples: [['', 'sessions/current.jsonl becomes sessions/<time>.jsonl']],
  async run(context, { agent, json = false }) {
    const setup = loadSetup(context, { agent })
    const agentProfile = agentProfileOf(setup)
    const { id, paths } = agentProfile
    const putAside = () => {
      forgetPointer(paths.conversation)
      return archiveSession(paths.session, Date.now())
    }
    // Before the first turn there is no record to update.
    const noted = existsSync(setup.config.memory.path)
    const archive = noted
      ? await withMemory(setup, async ({ files }) => {
          await files.prepare()
          return files.reset(runAgent(agentProfile), putAside)
        })
      : putAside()
    const text = archive === undefined ? `the session of "${id}" is empty\n` : `archived ${archive}\n`
    printOne(context, { json, value: { agent: id, archive: archive ?? null }, text })
  },
})

/** Prints the same bytes as `cat soul.md` when there is nothing else; prints nothing without a soul. */
export const compose = command({
  flags: agentFlag,
  examples: [['--agent coder', 'the text that the model reads first']],
  async run(context, { agent }) {
    const setup = loadSetup(context, { agent })
    context.process.stdout.data(await soulOf(setup, agentProfileOf(setup)))
  },
})

/** Implements `log EVENT [MESSAGE]`: it adds a script's own line to agent.jsonl, beside those of the turns. */
export const log = command({
  flags: agentFlag,
  args: {
    event: { type: 'text', about: 'What happened, one word' },
    message: { type: 'text', optional: true, about: 'More about it (default: none)' },
  },
  examples: [['deploy "to staging"', 'a line in agent.jsonl']],
  run(context, { agent }, { event, message = '' }) {
    if (!/^[\w.-]{1,64}$/.test(event)) throw usageError(`"${event}" is not an event; write one word, such as deploy_done`)
    const { redactor, ...setup } = loadSetup(context, { agent })
    const { id, paths } = agentProfileOf(setup)
    appendTrace(paths.log, { agent: id, event, message: redactor.text(message) }, Date.now())
  },
})

export const load = command({
  flags: { ...agentFlag, ...jsonFlag },
  args: { n: { type: 'whole', optional: true, about: 'Only the last so many entries' } },
  examples: [
    ['', 'everything'],
    ['4 --json', 'the last four entries as JSON lines'],
  ],
  run(context, { agent, json = false }, { n: limit }) {
    const { id, paths } = agentProfileOf(loadSetup(context, { agent }))
    const { entries, unreadable } = loadSession(paths.session, limit)
    if (unreadable.length > 0)
      context.process.stderr.write(
        `note: ${paths.session}: left out what is not an entry: line ${unreadable.slice(0, 10).join(', ')}${unreadable.length > 10 ? ', …' : ''}\n`,
      )
    if (entries.length === 0 && unreadable.length === 0) context.process.stderr.write(`nothing said yet in the session of "${id}"\n`)
    for (const entry of entries) {
      context.process.stdout.write(json ? `${JSON.stringify(entry)}\n` : shown(entry))
      if (context.outputClosed()) return
    }
  },
})

/** Formats an entry; its further lines are indented. */
function shown({ ts, role, content }: SessionEntry): string {
  return `${`${ts} ${role}: ${content}`.replaceAll('\n', '\n  ')}\n`
}

export const append = command({
  flags: agentFlag,
  args: {
    role: { type: 'text', about: 'Who said it: user, assistant, or another word' },
    content: { type: 'text', optional: true, about: 'What was said (default: stdin)' },
  },
  examples: [['user "Hello"', 'a line in sessions/current.jsonl']],
  async run(context, { agent }, { role, content }) {
    if (!/^\w{1,32}$/.test(role)) throw usageError(`"${role}" is not a role; write one word, such as user or assistant`)
    const { redactor, ...setup } = loadSetup(context, { agent })
    const { paths } = agentProfileOf(setup)
    const said = content ?? (await piped(context))
    appendSession(paths.session, [{ role, content: redactor.text(said) }], Date.now())
  },
})

async function piped({ process: { stderr } }: CliContext): Promise<string> {
  if (stdinKind() !== 'data') throw usageError('nothing to append: pass the content, or pipe it in')
  return (await readStdin({ patient: true, tell: (line) => stderr.write(`${line}\n`) })).replace(/\n$/, '')
}

export const count = command({
  flags: agentFlag,
  examples: [['', 'a number']],
  run(context, { agent }) {
    context.process.stdout.write(`${countSession(agentProfileOf(loadSetup(context, { agent })).paths.session)}\n`)
  },
})
