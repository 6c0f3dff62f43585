/** Starts the dashboard in the browser. */

import { render } from 'preact'
import { App } from './app.tsx'
import { notice, place } from './state.ts'

const root = document.getElementById('app')
if (root) render(<App />, root)
addEventListener('hashchange', () => {
  place.value = location.hash.slice(2)
  notice.value = undefined
  scrollTo(0, 0)
})
