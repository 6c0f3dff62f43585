/** Implements `hooks`: lists the hooks of this workspace. */

import { loadSetup } from '../../../host/setup/setup.ts'
import { loadHooks } from '../../../host/toolset/guests/hooks/load-hooks.ts'
import { command } from '../../args/command.ts'
import { jsonFlag, workspaceFlag } from '../../args/turn-flags.ts'
import { CliExit, exitCodes } from '../../exit.ts'
import { printList } from '../../print-list.ts'

export const hooks = command({
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
