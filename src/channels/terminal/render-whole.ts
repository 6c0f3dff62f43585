/** Prints the answer only when it is complete: for a pipe or a file, whose reader cannot use half an answer. */

import { createRender, type OutputFormat, type Render, type Screen } from './render.ts'

/**
 * At a terminal, and in JSON, it renders as usual. Otherwise stdout gets exactly the final answer and a newline; all else goes to stderr.
 */
export function renderWhole(format: OutputFormat, screen: Screen): Render {
  if (format !== 'text' || screen.terminal) return createRender(format, screen)
  const rest = createRender('text', { ...screen, out: { write: nothing, data: nothing, stream: nothing } })
  const state: { answer?: string } = {}
  return {
    show(event) {
      rest.show(event)
      if (event.type === 'done') state.answer = event.result
    },
    end({ ending }) {
      const { answer = '' } = state
      // Text that the model produced before it failed is not its answer.
      if (ending.code === 'provider' || ending.code === 'timeout') return
      if (answer !== '') screen.out.data(answer.endsWith('\n') ? answer : `${answer}\n`)
    },
  }
}

function nothing(): void {}
