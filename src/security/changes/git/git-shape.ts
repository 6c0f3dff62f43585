/** Says what git takes for a repository folder, whatever the folder is called. Only the names in it count. */

/** The names that make a folder a repository: HEAD, and either both `objects` and `refs` or a `commondir` that points to them. */
export const gitParts = ['HEAD', 'objects', 'refs', 'commondir'] as const

export type GitPart = (typeof gitParts)[number]

/** A part that git cannot use now can become usable, and a symbolic link may lead anywhere, so only the names are asked for. */
export function isGitFolder(has: (name: GitPart) => boolean): boolean {
  return has('HEAD') && (has('commondir') || (has('objects') && has('refs')))
}
