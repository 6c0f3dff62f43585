/** `session load | append | count`: what was said to an agent and by it, as a file that scripts read and write. */

import type { CliContext } from '../../../channels/terminal/context.ts'
import { readStdin } from '../../../channels/terminal/input-stream.ts'
import { stdinKind } from '../../../channels/terminal/tty.ts'
import { personaOf } from '../../../host/setup/agent-profile.ts'
import { setUp } from '../../../host/setup/setup.ts'
import { appendSession, countSession, type Entry, loadSession } from '../../../memory/agent-files/session-file.ts'
import { CliExit, exitCodes } from '../../exit.ts'
import type { AgentOnly, SessionFlags } from '../../routes/types.ts'

/** @param limit only the last so many */
export function load(this: CliContext, { agent, json = false }: SessionFlags, limit?: number): void {
  const { id, paths } = personaOf(setUp(this, { agent }))
  const { entries, unreadable } = loadSession(paths.session, limit)
  if (unreadable.length > 0)
    this.process.stderr.write(
      `note: ${paths.session}: left out what is no entry: line ${unreadable.slice(0, 10).join(', ')}${unreadable.length > 10 ? ', …' : ''}\n`,
    )
  if (entries.length === 0 && unreadable.length === 0) this.process.stderr.write(`nothing said yet in the session of "${id}"\n`)
  for (const entry of entries) {
    this.process.stdout.write(json ? `${JSON.stringify(entry)}\n` : shown(entry))
    if (this.outputClosed()) return
  }
}

/** One line an entry; further lines of it are indented. */
function shown({ ts, role, content }: Entry): string {
  return `${`${ts} ${role}: ${content}`.replaceAll('\n', '\n  ')}\n`
}

export async function append(this: CliContext, { agent }: AgentOnly, role: string, content?: string): Promise<void> {
  if (!/^\w{1,32}$/.test(role)) throw new CliExit(exitCodes.usage, `error: "${role}" is no role; write one word, such as user or assistant`)
  const { redactor, ...setup } = setUp(this, { agent })
  const { paths } = personaOf(setup)
  const said = content ?? (await piped(this))
  appendSession(paths.session, [{ role, content: redactor.text(said) }], Date.now())
}

async function piped({ process: { stderr } }: CliContext): Promise<string> {
  if (stdinKind() !== 'data') throw new CliExit(exitCodes.usage, 'error: nothing to append: pass the content, or pipe it in')
  return (await readStdin({ patient: true, tell: (line) => stderr.write(`${line}\n`) })).replace(/\n$/, '')
}

export function count(this: CliContext, { agent }: AgentOnly): void {
  this.process.stdout.write(`${countSession(personaOf(setUp(this, { agent })).paths.session)}\n`)
}
