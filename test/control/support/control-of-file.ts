/** Serves one filled control plane for all tests of a file, where there is a browser to look at it. */

import { afterAll, beforeAll } from 'bun:test'
import { hasBrowser } from '../../support/browser.ts'
import { type ControlUnderTest, controlServer } from './control-server.ts'
import { type FilledControl, fillControl } from './filled-control.ts'

type Here = { readonly at: ControlUnderTest; readonly filled: FilledControl }

/** @returns it, while the tests run */
export function filledControlOfFile(): () => Here {
  const state: { at?: ControlUnderTest; filled?: FilledControl } = {}
  beforeAll(async () => {
    if (!hasBrowser) return
    state.at = await controlServer()
    state.filled = await fillControl(state.at)
  })
  afterAll(async () => {
    await state.at?.[Symbol.asyncDispose]()
  })
  return () => {
    if (!state.at || !state.filled) throw new Error('the control plane is not there')
    return { at: state.at, filled: state.filled }
  }
}
