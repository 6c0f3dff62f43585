/** Reads and writes the part of the address behind a page's name, such as "TASK-001" or "?status=dead&role=sysadmin". */

import { notice, place } from '../../state.ts'
import { queryOf } from '../net/plane-live.ts'

export type Filters = { readonly [name: string]: string }

export function filtersOf(rest: string): Filters {
  const at = rest.indexOf('?')
  return at < 0 ? {} : Object.fromEntries(new URLSearchParams(rest.slice(at + 1)))
}

/** Changes filters in the address without a new entry in the history, and without a jump to the top. */
export function changeFilters(page: string, change: Filters): void {
  const query = queryOf({ ...filtersOf(place.peek()), ...change })
  history.replaceState(null, '', `#/${page}${query}`)
  place.value = `${page}${query}`
}

export function idIn(rest: string): string {
  const id = rest.split('?')[0]?.split('/')[0] ?? ''
  try {
    return decodeURIComponent(id)
  } catch {
    return id
  }
}

/** Goes to another page and says there what was done; messages of the page before go away with it. */
export function goTo(address: string, text: string): void {
  const tell = () => {
    notice.value = { text }
  }
  addEventListener('hashchange', tell, { once: true })
  location.hash = `#/${address}`
}
