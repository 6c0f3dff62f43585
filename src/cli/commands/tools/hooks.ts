/** Implements `hooks`: lists the hooks of this workspace, and tries those of one event. */

import { policyOf } from '../../../host/setup/effective-policy.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { hookEvents } from '../../../host/toolset/hooks/hook.ts'
import { loadHooks } from '../../../host/toolset/hooks/load-hooks.ts'
import { runHook } from '../../../host/toolset/hooks/run-hook.ts'
import { createConfinement } from '../../../host/toolset/sandbox/command-sandbox.ts'
import { isJsonObject, parseJson } from '../../../kit/json.ts'
import { command } from '../../args/command.ts'
import { jsonFlag, workspaceFlag } from '../../args/turn-flags.ts'
import { CliExit, exitCodes, usageError } from '../../exit.ts'
import { printList } from '../../print-list.ts'

export const list = command({
  flags: { ...workspaceFlag, ...jsonFlag },
  examples: [['', 'which hooks run here, and what is wrong with them']],
  run(context, { workspace, json = false }) {
    const { hooks, notices, problems } = loadHooks(loadSetup(context, { workspace }))
    for (const line of [...notices, ...problems]) context.process.stderr.write(`${line}\n`)
    const items = hooks.map(({ event, name, sandbox, write, file, run, timeoutS }) => ({
      event,
      name,
      sandbox,
      write,
      file,
      run,
      timeoutS,
    }))
    const lines = items.map(({ event, name, sandbox, file }) => [event, name, sandbox ? 'sandbox' : 'no sandbox', file].join('\t'))
    printList(context, { items, json, lines, none: 'there are no hooks here' })
    if (problems.length > 0) throw new CliExit(exitCodes.error)
  },
})

export const test = command({
  flags: {
    tool: { type: 'text', about: 'The tool of the call; shell by default' },
    args: { type: 'text', about: 'Its arguments, as JSON' },
    ...workspaceFlag,
    ...jsonFlag,
  },
  args: { event: { type: 'choice', values: hookEvents, about: 'What happens' } },
  examples: [[`before_tool --args '{"command":"rm -rf /"}'`, 'what the hooks say to a command; it does not run']],
  async run(context, { tool = 'shell', args = '{}', workspace, json = false }, { event }) {
    const setup = loadSetup(context, { workspace })
    const input = parseJson(args)
    if (!isJsonObject(input)) throw usageError('--args must be a JSON object, such as {"command":"ls"}')
    const policy = policyOf(setup.config, setup.paths, setup.context.env)
    const { spawn, close } = createConfinement('auto', { setup, policy })
    const run = {
      setup,
      spawn,
      base: { conversation: 'test', workspace: policy.workspace, dryRun: true },
      signal: new AbortController().signal,
    }
    const paths = typeof input.path === 'string' ? [input.path] : []
    const occasion = { event, call: { name: tool, input }, paths, facts: { prompt: 'test', message: 'test' } }
    const items: object[] = []
    for (const hook of loadHooks(setup).hooks.filter((hook) => hook.event === event && hook.matches(occasion))) {
      const { answer, view } = await runHook(hook, occasion, run)
      view?.drop()
      items.push({ name: hook.name, ...answer })
    }
    printList(context, { items, json, lines: items.map((item) => JSON.stringify(item)), none: `no hook for ${event} matches` })
    close()
  },
})
