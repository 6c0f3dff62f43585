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
    printList(context, {
      items: hooks.map(({ name, event, run, timeoutS, sandbox, write, file }) => ({ name, event, run, timeoutS, sandbox, write, file })),
      json,
      lines: hooks.map(({ name, event, sandbox, write, file }) =>
        [event, name, sandbox ? (write ? 'sandbox, writes' : 'sandbox') : 'no sandbox', file].join('\t'),
      ),
      none: 'there are no hooks here',
    })
    if (problems.length > 0) throw new CliExit(exitCodes.error)
  },
})

export const test = command({
  flags: {
    tool: { type: 'text', about: 'The tool of the call; shell by default' },
    input: { type: 'text', about: 'Its arguments, as JSON' },
    path: { type: 'text', many: true, about: 'A path that the call names, absolute' },
    ...workspaceFlag,
    ...jsonFlag,
  },
  args: { event: { type: 'choice', values: hookEvents, about: 'What happens' } },
  examples: [[`before_tool --input '{"command":"rm -rf /"}'`, 'what the hooks say to a command; it does not run']],
  async run(context, { tool = 'shell', input = '{}', path = [], workspace, json = false }, { event }) {
    const setup = loadSetup(context, { workspace })
    const parsed = parseJson(input)
    if (!isJsonObject(parsed)) throw usageError('--input must be a JSON object, such as {"command":"ls"}')
    const policy = policyOf(setup.config, setup.paths, setup.context.env)
    const confinement = createConfinement('auto', { setup, policy })
    const base = { conversation: 'test', workspace: policy.workspace, dryRun: true }
    const occasion = { event, call: { name: tool, input: parsed }, paths: path, facts: { prompt: 'test', message: 'test' } }
    const chosen = loadHooks(setup).hooks.filter((hook) => hook.event === event && hook.matches(occasion))
    const { signal } = new AbortController()
    try {
      const tried = await Promise.all(
        chosen.map(async (hook) => {
          const { answer, view } = await runHook(hook, occasion, { setup, base, spawn: confinement.spawn, signal })
          view?.drop()
          return { name: hook.name, ...answer }
        }),
      )
      printList(context, { items: tried, json, lines: tried.map((each) => JSON.stringify(each)), none: `no hook for ${event} matches` })
    } finally {
      confinement.close()
    }
  },
})
