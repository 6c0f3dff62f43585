/** Follows a symbolic link name by name through the workspace as it would be with the changes. */

import type { PathPolicy } from '../targets/path.ts'
import { isUnder } from '../targets/path.ts'
import { type ChangeView, folderOf } from './change-view.ts'
import type { Side } from './review-context.ts'

/** `inside` is relative to the workspace, '' for the workspace itself; `outside` is absolute and not followed further. */
export type LinkEnd = { readonly inside: string; readonly outside?: undefined } | { readonly outside: string; readonly inside?: undefined }

type Start = { readonly view: ChangeView; readonly policy: Pick<PathPolicy, 'workspace'>; readonly side: Side }

/** @returns undefined for links that go round in circles or cannot be read */
export function resolveLink({ link, ...start }: Start & { readonly link: string }): LinkEnd | undefined {
  const target = start.view.target(link, start.side)
  return target === undefined ? undefined : resolveText({ ...start, folder: folderOf(link), target })
}

const mostLinks = 40

/** Resolves the text of a link, or of a file that names a path, as if it stood in this folder of the workspace. */
export function resolveText({
  view,
  policy,
  side,
  folder,
  target,
}: Start & { readonly folder: string; readonly target: string }): LinkEnd | undefined {
  const at = { names: split(folder), rest: [target], links: 0 }
  while (at.rest.length > 0) {
    const text = at.rest.shift() ?? ''
    // The real name is not UTF-8, so nobody can look at what it stands for.
    if (text.includes('\ufffd')) return undefined
    if (text.startsWith('/') || leavesAt(text, at.names)) {
      const whole = [text.startsWith('/') ? text : `${policy.workspace}/${text}`, ...at.rest].join('/')
      const place = plain(whole)
      if (!isUnder(place, policy.workspace)) return { outside: place }
      at.names = []
      at.rest = split(place.slice(policy.workspace.length))
    } else if (text.includes('/')) at.rest.unshift(...split(text))
    else if (text === '..') at.names.pop()
    else if (text !== '.' && text !== '') {
      const path = [...at.names, text].join('/')
      if (view.kind(path, side) !== 'link') at.names.push(text)
      else {
        const next = view.target(path, side)
        if (next === undefined || ++at.links > mostLinks) return undefined
        at.rest.unshift(next)
      }
    }
  }
  return { inside: at.names.join('/') }
}

function leavesAt(text: string, names: readonly string[]): boolean {
  return text === '..' && names.length === 0
}

function split(path: string): string[] {
  return path.split('/').filter(Boolean)
}

/** Outside the workspace nothing can be looked at, so `..` is taken as written. */
function plain(path: string): string {
  const names: string[] = []
  for (const name of path.split('/')) {
    if (name === '..') names.pop()
    else if (name !== '' && name !== '.') names.push(name)
  }
  return `/${names.join('/')}`
}
