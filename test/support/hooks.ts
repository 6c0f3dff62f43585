/** Opens a host whose home or project has hooks, and a model that makes given calls. */

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { ConversationOptions } from '../../src/host/api.ts'
import { openHost } from '../../src/host/open/open-host.ts'
import type { ModelCall } from '../../src/providers/model-call.ts'
import type { AgentEvent } from '../../src/runtime/event.ts'
import { begin, events, place } from './host.ts'

type Stage = {
  readonly config?: string
  /** TOML by name, in the home. */
  readonly hooks?: { readonly [name: string]: string }
  /** Texts by path, in the workspace. */
  readonly files?: { readonly [path: string]: string }
  readonly trusted?: boolean
}

/** Has no sandbox, so that tests of what hooks say need no program of the machine. */
export const outside = 'sandbox = false\n'

/** @returns a hook that runs this command line and reads its stdin */
export function hook(on: string, run: string, more = outside): string {
  return `on = ["${on}"]\nrun = '''${run}'''\n${more}`
}

/** @returns a command line that notes its stdin in the file and prints this answer */
export const saying = (answer: object, seen = '/dev/null') => `cat >> ${seen}; printf '%s' '${JSON.stringify(answer)}'`

export async function stage({ config = '[security]\nautonomy = "full"\n', hooks = {}, files = {}, trusted = false }: Stage) {
  const at = place(config)
  const seen = join(at.home, 'seen')
  const write = (path: string, text: string) => {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
  }
  for (const [name, text] of Object.entries(hooks)) write(join(at.home, 'hooks', `${name}.toml`), text.replaceAll('SEEN', seen))
  for (const [name, text] of Object.entries(files)) write(join(at.cwd, name), text.replaceAll('SEEN', seen))
  if (trusted) write(join(at.home, 'trusted_folders'), `${at.cwd}\n`)
  const lines: string[] = []
  const host = await openHost(at.setup({}, (line) => void lines.push(line)))
  return {
    ...at,
    host,
    lines,
    read: (path: string) => readFileSync(join(at.cwd, path), 'utf8'),
    /** What the hooks read, one JSON object a line. */
    seen: () => {
      try {
        return readFileSync(seen, 'utf8')
          .split('\n')
          .filter(Boolean)
          .map((line): { [key: string]: unknown } => JSON.parse(line))
      } catch {
        return []
      }
    },
    begin: (model: ModelCall, more: Partial<ConversationOptions> = {}) => begin(host, model, more),
    async [Symbol.asyncDispose]() {
      await host.close()
      at[Symbol.dispose]()
    },
  }
}

/** A model that makes these calls, one a reply, and then answers. */
export function making(...calls: readonly (readonly [tool: string, input: object])[]): ModelCall {
  return async function* (messages) {
    const since = messages.findLastIndex(({ role }) => role === 'user')
    const results = messages.slice(since).filter(({ role }) => role === 'tool')
    const call = calls[results.length]
    if (call) yield { type: 'tool_use', name: call[0], input: { ...call[1] } }
    else yield { type: 'text', content: 'done' }
  }
}

/** The results of the calls of one turn, as the model reads them. */
export async function results(conversation: Awaited<ReturnType<typeof begin>>, message = 'go'): Promise<string[]> {
  return outputs(await events(conversation, message))
}

export function outputs(all: readonly AgentEvent[]): string[] {
  return all.flatMap((event) => (event.type === 'tool_result' ? [String(event.output)] : []))
}
