/** Opens a control plane and a worker's place for each test of a file, and closes them after it. */

import { afterEach, beforeEach } from 'bun:test'
import { type TestPlane, testPlane } from './plane-port.ts'
import { type WorkerPlace, workerPlace } from './worker-place.ts'

export type PlaneAndPlace = { readonly plane: TestPlane; readonly place: WorkerPlace }

/** @returns those of the test that runs */
export function planeAndPlaceOfEachTest(): () => PlaneAndPlace {
  const state: { given?: PlaneAndPlace } = {}
  beforeEach(async () => {
    state.given = { plane: await testPlane(), place: await workerPlace() }
  })
  afterEach(async () => {
    await state.given?.place.close()
    await state.given?.plane.close()
  })
  return () => {
    if (!state.given) throw new Error('not open')
    return state.given
  }
}

/** The last line of a runner that is a shell script. */
export const result = (fields: object) => `echo '${JSON.stringify({ type: 'result', ok: true, output: 'done', ...fields })}'`
