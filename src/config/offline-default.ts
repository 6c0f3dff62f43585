/** Recognises the lines by which `init` made the offline helper the default, so that a later `init` may replace them. */

/** Includes the comments that init writes; a user who chooses a provider writes other lines or leaves the comments out. */
const written =
  /^(# Which of \[providers\.models\.NAME\] answers\..*\r?\ndefault_provider = )"local"([ \t]*\r?\n# The model asked of the default provider\..*\r?\ndefault_model = )"mock"(?=[ \t]*\r?$)/m

export function isOfflineDefault(text: string): boolean {
  return written.test(text)
}

/** Replaces "local" and "mock" with these two values, which must already be quoted. */
export function replaceOfflineDefault(text: string, { provider, model }: { readonly provider: string; readonly model: string }): string {
  return text.replace(written, (_, first: string, second: string) => `${first}${provider}${second}${model}`)
}

/** Marks the offline helper as the user's own choice, so that no later `init` replaces it. */
export function chooseOffline(text: string, end: string): string {
  return text.replace(written, (whole) =>
    whole.replace('default_provider = ', `# Chosen by hand; init leaves it.${end}default_provider = `),
  )
}
