/** What a screen reader is told without moving there. The region is in App. */

export const REGION = "announcements";

export function announce(text: string): void {
  const region = document.getElementById(REGION);
  if (region && region.textContent !== text) region.textContent = text;
}
