/** Implements `shell-init`: it prints the functions of lib/ for `eval`, in sh, dash and bash. */

import compose from '../../../../lib/compose.sh' with { type: 'text' }
import config from '../../../../lib/config.sh' with { type: 'text' }
import llm from '../../../../lib/llm.sh' with { type: 'text' }
import log from '../../../../lib/log.sh' with { type: 'text' }
import session from '../../../../lib/session.sh' with { type: 'text' }
import shellclaw from '../../../../lib/shellclaw.sh' with { type: 'text' }
import toolLoop from '../../../../lib/tool_loop/interface.sh' with { type: 'text' }
import { command } from '../../args/command.ts'

export const shellInit = command({
  examples: [
    ['', 'the text of the functions'],
    ['> braidclaw.sh', 'a file to source'],
  ],
  details: () =>
    'eval "$(braidclaw shell-init)" defines the functions log_event, config_init, config_get, config_agent, session_append, session_load, session_count, session_clear, llm_call, llm_call_stub, compose_system, tool_loop and shellclaw (docs/unix.md). The same functions stand in lib/*.sh.',
  run(context) {
    context.process.stdout.data([log, config, session, llm, compose, toolLoop, shellclaw].join('\n'))
  },
})
