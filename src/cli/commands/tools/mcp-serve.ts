/** Implements `mcp serve`: other programs use the tools, the agent and the records of this home over the Model Context Protocol. */

import { assertCommandLine } from '../../../channels/list.ts'
import { createHomeOffer } from '../../../channels/mcp/home-offer.ts'
import { serveOnStdio } from '../../../channels/mcp/serve-stdio.ts'
import { openHost } from '../../../host/open/open-host.ts'
import { withFoundModels } from '../../../host/setup/provider-pool.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { parseToolsOption } from '../../../host/toolset/tools-option.ts'
import { hideProcess } from '../../../sandbox/protect/hide.ts'
import { command, type Flags } from '../../args/command.ts'
import { serverFlags, toolEnvFlag, toolsFlag } from '../../args/turn-flags.ts'

const flags = { ...toolsFlag, ...serverFlags, ...toolEnvFlag } as const satisfies Flags

export const mcpServe = command({
  flags,
  examples: [
    ['', 'speaks MCP on stdin and stdout until its input ends'],
    ['--autonomy readonly', 'whatever the client wants, nothing is changed'],
    ['--tools ./tools', 'offers only the executables of that folder'],
  ],
  details: () =>
    `A client starts it; in .mcp.json:

{"mcpServers":{"braidclaw":{"command":"braidclaw","args":["mcp","serve"]}}}

It offers the tools of this home behind its gate, the tool agent_turn, receipts, runs, conversations and skills; with --tools only those tools. A call that needs a yes asks the person at the client, or waits for "braidclaw approvals allow". Over HTTP, "braidclaw serve" answers at /mcp with its tokens (docs/mcp-server.md).`,
  async run(context, given) {
    const { tools, sandbox } = given
    // Commands must not write into our stdin.
    hideProcess()
    const setup = await withFoundModels(loadSetup(context, given))
    assertCommandLine(setup)
    const host = await openHost(setup, { ahead: false })
    const isAll = tools === undefined
    const options = { setup, sandbox, ...(isAll ? {} : { tools: parseToolsOption(setup, tools) }) }
    const may = { call: true, agent: isAll, read: isAll, approve: true }
    try {
      await serveOnStdio(createHomeOffer({ host, options, name: 'mcp client', may, sees: host.hasConversation }, { running: 0 }))
    } finally {
      await host.close()
    }
  },
})
